"""Every format draws every run, escapes what users write, and fits eighty columns."""

from __future__ import annotations

import re

import pytest

from builders import event, frame, run_of
from compilescope.model.bodies import (
    CacheAccess,
    CacheEntryMiss,
    CompileFailed,
    CudagraphSkip,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    HookUnavailable,
    Recompile,
    ToolFault,
)
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef
from compilescope.report.document import all_sections, report_document
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

CODE = CodeRef("/home/ada/project/model.py", 6, "forward")
HOSTILE = "<script>alert('x')</script> `*_[|]\x1b[31m" + "y" * 200


def full_run() -> Run:
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame())
    bodies = [
        GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE),
        GraphBreak(
            gb_type="Data-dependent branching", gb_id="GB0170", hints=("Use cond.",), frame=CODE
        ),
        FrameSkipped(CODE, "graph-break", "Data-dependent branching", because="0.2"),
        FrameSkipped(CODE, "unexplained", "?"),
        Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),), refused="limit"),
        CompileFailed("BackendCompilerFailed", "no such op", backend="toy", frame=CODE),
        CacheAccess("fx_graph", "miss"),
        CudagraphSkip("mutated inputs"),
        HookUnavailable("h", "torch.x", "something"),
        ToolFault("hook", "KeyError: 1"),
    ]
    return run_of(*(event(body, number=n, stack=(frame(),)) for n, body in enumerate(bodies)))


def hostile_run() -> Run:
    bad = frame(source=HOSTILE, column=0, end_column=8, function=HOSTILE)
    body = GraphBreak(gb_type=HOSTILE, explanation=HOSTILE, hints=(HOSTILE,), frame=CODE)
    return run_of(event(body, number=1, stack=(bad,)))


RUNS = {
    "empty": run_of(),
    "nothing": run_of(ended=False),
    "full": full_run(),
    "hostile": hostile_run(),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_format_draws_every_run(name: str) -> None:
    document = report_document(Reading(RUNS[name]))
    for draw in (to_text, to_markdown, to_html):
        assert document.title in draw(document).replace("\\", "")


@pytest.mark.parametrize("name", RUNS)
def test_the_terminal_report_fits_eighty_columns(name: str) -> None:
    text = to_text(report_document(Reading(RUNS[name])), width=80)
    assert max(len(line) for line in text.splitlines()) <= 80


def test_no_colour_unless_asked() -> None:
    document = report_document(Reading(full_run()))
    assert "\x1b[" not in to_text(document)
    assert "\x1b[" in to_text(document, colour=True)


def test_what_users_write_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in to_text(report_document(Reading(hostile_run())))


def test_html_escapes_what_users_write() -> None:
    html = to_html(report_document(Reading(hostile_run())))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_markdown_escapes_what_users_write() -> None:
    text = to_markdown(report_document(Reading(hostile_run())))
    outside_code = re.sub(r"(`+).*?\1", "", text.replace("\\`", ""), flags=re.S)
    assert "<script>" not in outside_code.replace("\\<script\\>", "")


def test_carets_stand_under_the_expression() -> None:
    lines = to_text(report_document(Reading(full_run()))).splitlines()
    at = next(i for i, line in enumerate(lines) if "if h.mean() > 0:" in line)
    start = lines[at].index("h.mean() > 0")
    assert lines[at + 1] == " " * start + "^" * len("h.mean() > 0")


def test_each_kind_of_event_shows() -> None:
    text = to_text(report_document(Reading(full_run())), width=80)
    for words in (
        "GB0170",
        "torch.cond",
        "expected 2, got 3",
        "recompile limit was hit",
        "BackendCompilerFailed",
        "mutated inputs",
        "Not seen on torch",
        "fault of compilescope's own",
        "Unexplained skips",
        "1 miss",
    ):
        assert words in " ".join(text.split()), words


def test_verdicts() -> None:
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE)
    clean = to_text(report_document(Reading(run_of(event(graph, number=1)))))
    assert "1 graph, no graph break, no recompile." in clean
    assert "Nothing was compiled." in to_text(report_document(Reading(run_of())))
    cut = to_text(report_document(Reading(run_of(ended=False))))
    assert "Cut short" in cut


def test_sections_are_ordered_and_unique() -> None:
    orders = [section.order for section in all_sections()]
    assert orders == sorted(set(orders))
