"""Runs with more causes than anyone reads: counts stay exact, what is left out is named."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from builders import event, frame, run_of
from compilescope.knowledge.analysis.logged.answers import LoggedBreak
from compilescope.knowledge.findings.remedy import is_not_tried
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
    CudagraphSkip,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    LogRead,
    Measurement,
    Recompile,
    ToolFault,
    Violation,
)
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import Block
from compilescope.report.cause_list import causes_table
from compilescope.report.document import report_document
from compilescope.report.explanation import fitted_explanation
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text
from compilescope.report.section import MOST_ITEMS, Reading
from compilescope.report.sections import logged

CAUSES = MOST_ITEMS + 5


def many_breaks() -> Run:
    return run_of(
        *(
            event(
                GraphBreak("Data-dependent branching", "GB0170", frame=CodeRef("/a.py", n, "f")),
                number=n,
                stack=(frame(n, file="/a.py", source=f"if h{n}.mean() > 0:"),),
            )
            for n in range(1, CAUSES + 1)
        )
    )


def many_failures() -> Run:
    return run_of(
        *(
            event(
                CompileFailed(
                    "RuntimeError", f"no {n}", backend="b", frame=CodeRef("/a.py", n, f"f{n}")
                ),
                number=n,
                stack=(frame(n, file="/a.py", source=f"h{n}.mean()"),),
            )
            for n in range(1, CAUSES + 1)
        )
    )


def many_skips() -> Run:
    return run_of(
        *(
            event(FrameSkipped(CodeRef("/a.py", n, f"f{n}"), "unexplained"), number=n)
            for n in range(1, CAUSES + 1)
        )
    )


def many_violations() -> Run:
    return run_of(
        *(
            event(
                Violation("dtype", "npu", f"aten.op{n}", "float64", "float32"),
                number=n,
            )
            for n in range(1, CAUSES + 1)
        )
    )


def many_cudagraph_skips() -> Run:
    return run_of(
        *(event(CudagraphSkip(f"mutates input {n}"), number=n) for n in range(1, CAUSES + 1))
    )


@pytest.fixture
def long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run here is a long one, whose fixes are asked about two causes."""
    monkeypatch.setattr("compilescope.knowledge.analysis.partial_digest._LONG", 2)
    for name in ("_ASKED_OF_LONG", "_ASKED_FOR_SUMMARY"):
        monkeypatch.setattr(f"compilescope.report.section.{name}", 2)


def test_a_page_draws_the_first_breaks_and_names_the_rest() -> None:
    page = to_page([report_document(Reading(many_breaks(), full=True, page=True))])
    assert "and 5 more: " in page
    assert "compilescope show --all --section breaks abc123-model" in page


@pytest.mark.parametrize(
    ("make", "section"),
    [
        (many_skips, "skips"),
        (many_violations, "constraints"),
        (many_cudagraph_skips, "cudagraphs"),
    ],
)
def test_a_page_draws_the_first_of_any_list(make: Callable[[], Run], section: str) -> None:
    page = to_page([report_document(Reading(make(), full=True, page=True))])
    assert "and 5 more: " in page
    assert f"compilescope show --all --section {section} abc123-model" in page


def test_the_whole_report_draws_them_all() -> None:
    text = to_text(report_document(Reading(many_breaks(), full=True), "breaks"))
    assert f"if h{CAUSES}.mean() > 0:" in text
    assert "more:" not in text


def test_a_report_in_full_names_what_nobody_would_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilescope.report.section.MOST_IN_FULL", 10)
    text = to_text(report_document(Reading(many_breaks(), full=True), "breaks"))
    assert "if h10.mean() > 0:" in text
    assert "if h11.mean() > 0:" not in text
    assert f"and {CAUSES - 10} more; see --json" in text


def test_no_link_leads_to_an_entry_that_is_not_drawn() -> None:
    page = to_page([report_document(Reading(many_failures(), full=True, page=True))])
    links = set(re.findall(r'href="#([^"]*)"', page))
    assert links
    assert links <= set(re.findall(r'id="([^"]*)"', page))
    assert "compilescope show --all --section failures abc123-model" in page


def test_a_page_says_how_many_causes_the_fixes_were_asked_about(long_runs: None) -> None:
    page = to_page([report_document(Reading(many_breaks(), full=True, page=True))])
    assert f"looked for fixes for 2 of {CAUSES} causes" in page


def test_a_short_run_is_asked_about_in_full() -> None:
    reading = Reading(many_breaks())
    assert not any(is_not_tried(each.advice) for each in reading.causes)


def test_one_cause_of_a_long_run_is_asked_about_on_its_own(long_runs: None) -> None:
    reading = Reading(many_breaks(), only=CAUSES)
    untried = [is_not_tried(each.advice) for each in reading.causes]
    assert untried == [True] * (CAUSES - 1) + [False]


def test_what_was_not_tried_names_the_command_that_tries(long_runs: None) -> None:
    first, *others = Reading(many_breaks()).causes[-1].advice
    assert (first.fix, first.status, first.diff) == (None, "not tried", "")
    assert f"`compilescope explain abc123-model --cause {CAUSES}`" in first.text
    assert {each.status for each in others} == {"by hand"}


def test_what_the_fixes_were_not_asked_about_is_said(long_runs: None) -> None:
    text = to_text(report_document(Reading(many_breaks()), "causes"))
    rows = [line for line in text.splitlines() if "a.py:" in line]
    assert len(rows) == CAUSES
    assert ["not tried" in row for row in rows] == [number > 2 for number in range(1, CAUSES + 1)]


def test_an_explanation_counts_the_causes_that_it_does_not_draw() -> None:
    drawn = fitted_explanation(
        Reading(many_breaks()), 40, lambda each: to_text(each).count("\n"), "ONE", "REST"
    )
    text = to_text(drawn)
    assert text.count("\n") <= 40
    listed = [line for line in text.splitlines() if "a.py:" in line]
    (more,) = [line for line in text.splitlines() if line.strip().startswith("and ")]
    assert int(more.split()[1]) == CAUSES - len(listed)


def test_any_list_of_a_long_run_is_bounded_and_counted(
    long_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the section: this one knows no bound of its own."""
    monkeypatch.setattr("compilescope.report.section.MOST_IN_FULL", 10)
    faults = [event(ToolFault(f"hook {n}", "no"), number=n) for n in range(30)]
    figures = [event(Measurement("speed", n, f"m{n}"), number=30 + n) for n in range(30)]
    reading = Reading(run_of(*faults, *figures), full=True, page=True)
    parts = {part.id: part.blocks for part in report_document(reading).parts}
    assert len(parts["measured"]) == 11
    assert "more; see --json" in str(parts["measured"][-1])
    assert "and 20 more; see --json" in str(parts["measurements"])
    assert "m9" in str(parts["measurements"]) and "m10" not in str(parts["measurements"])


def test_breaks_of_a_long_log_that_nobody_draws_are_counted_and_not_made(
    long_runs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    draw = logged._break

    def counted(number: int, each: LoggedBreak, reading: Reading) -> Block:
        made.append(number)
        return draw(number, each, reading)

    monkeypatch.setattr(logged, "_break", counted)
    log = event(LogRead(source="a.log", formats=("torch-logs",)), number=CAUSES + 1)
    run = run_of(*many_breaks().events, log)

    def shown() -> str:
        parts = report_document(Reading(run, full=True, page=True)).parts
        return str(next(part.blocks for part in parts if part.id == "log"))

    monkeypatch.setattr("compilescope.report.section.MOST_IN_FULL", 10)
    whole = shown()
    assert len(made) == CAUSES
    made.clear()
    monkeypatch.setattr(logged, "MOST_IN_FULL", 10)
    assert shown() == whole
    assert made == list(range(1, 11))


def test_a_place_that_is_not_drawn_takes_no_room_from_the_causes() -> None:
    """Of what is drawn, as of a run that has nothing else."""
    failed = FailedGuard("a == 1", f"self.{'a' * 50}", "1", "2")
    seen = [
        event(
            Recompile(CodeRef(file, 1, "f"), (CacheEntryMiss("0/0", (failed,)),)),
            number=number,
            compile_id="0/1",
        )
        for number, file in ((1, "/a.py"), (2, f"/{'long' * 9}.py"))
    ]
    tables = [
        causes_table(Reading(run_of(*seen[:most]), drawn=drawn), 1)
        for most, drawn in ((2, 1), (1, None))
    ]
    assert len(tables[0].rows) == 2
    assert tables[0].rows[0] == tables[1].rows[0]


def test_a_short_run_is_drawn_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilescope.report.section.MOST_IN_FULL", 10)
    figures = [event(Measurement("speed", n, f"m{n}"), number=n) for n in range(30)]
    text = to_text(report_document(Reading(run_of(*figures), full=True)))
    assert "m29" in text and "more; see" not in text
