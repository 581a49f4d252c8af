"""One number for one thing: whatever is counted reads the same in every view of a run."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from builders import event, frame, run_of
from compilescope.knowledge.analysis.comparison import compare
from compilescope.knowledge.analysis.compile_shares import compile_shares
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.figures import figures
from compilescope.knowledge.analysis.findings import by_cost, findings
from compilescope.knowledge.analysis.gate.verdict import NOTHING_LOST, judge
from compilescope.knowledge.analysis.json_form import digest_json
from compilescope.record.bodies import (
    Body,
    CacheEntryMiss,
    CompileTime,
    FailedGuard,
    GraphBreak,
    GraphCaptured,
    Recompile,
    RegionCalls,
)
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.document import report_document
from compilescope.report.explanation import explanation
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from samples import RUNS, big_run

CODE = CodeRef("/home/ada/project/model.py", 6, "forward")


def mixed_run() -> Run:
    """Two recompiles for sizes, which go on, one for a mode, which the program needs, a break."""
    guards = [
        FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame()),
        FailedGuard("x.size()[0] == 3", "x.size()[0]", "3", "4", frame=frame()),
        FailedGuard("self.training", "self.training", "True", "False", frame=frame(9)),
    ]
    found: list[tuple[Body, str]] = [(GraphCaptured(stage="dynamo", ops=2, frame=CODE), "0/0")]
    found.append((GraphBreak("Data-dependent branching", gb_id="GB0170", frame=CODE), "0/0"))
    for number, guard in enumerate(guards, 1):
        miss = CacheEntryMiss("0/0", (guard,))
        found.append((Recompile(CODE, (miss,)), f"0/{number}"))
        found.append((GraphCaptured(stage="dynamo", ops=2, frame=CODE), f"0/{number}"))
    for number in range(4):
        time = CompileTime(3_000_000_000, {}, frame=CODE, region=0, call=number + 1)
        found.append((time, f"0/{number}"))
    found.append((RegionCalls(0, 4), ""))
    return run_of(
        *(
            event(body, number=n, stack=(frame(),), compile_id=at or None)
            for n, (body, at) in enumerate(found, 1)
        )
    )


ALL = {**RUNS, "mixed": mixed_run(), "big": big_run(causes=12, graphs=8, events=60)}
COUNTED = [name for name in ALL if name not in ("empty", "nothing", "logged", "swept", "badswept")]
"""A sweep has figures of its own: the sums over its jobs."""


def counted(text: str) -> dict[str, str]:
    """The figures of a summary, of a terminal or of a page."""
    found = {}
    for label in ("Graphs", "Graph breaks", "Recompiles"):
        number = re.search(rf"(?m)^ +{label} +(?:at least )?(\d+)", text)
        if number is not None:
            found[label] = number[1]
    return found


def page_figures(page: str) -> dict[str, str]:
    found = {}
    for label in ("Graphs", "Graph breaks", "Recompiles"):
        number = re.search(rf"<dt>{label}</dt>\s*<dd>(?:<a[^>]*>)?(?:at least )?(\d+)", page)
        if number is not None:
            found[label] = number[1]
    return found


@pytest.mark.parametrize("name", COUNTED)
def test_counts_are_those_of_the_json(name: str) -> None:
    run = ALL[name]
    seen = digest_json(digest(run))
    told = {
        "Graphs": str(seen["graphs"]),
        "Graph breaks": str(len(seen["sites"])),
        "Recompiles": str(sum(frame["count"] for frame in seen["recompiles"])),
    }
    shown = counted(to_text(report_document(Reading(run))))
    assert shown in ({}, told)
    assert counted(to_text(report_document(Reading(run, full=True)))) == shown
    markdown = to_markdown(report_document(Reading(run)))
    row = re.search(r"(?m)^\| Graphs \| Graph breaks \| Recompiles .*\n.*\n(.*)$", markdown)
    if shown:
        assert row is not None and re.findall(r"(\d+)\*\*", row[1])[:3] == [*told.values()]
    compared = {each.name: each for each in compare(digest(run), digest(run)).figures}
    if digest(run).torch is not None:
        for label, figure in (("Graphs", "graphs"), ("Recompiles", "recompiles")):
            assert compared[figure].before == compared[figure].after == int(told[label])


@pytest.mark.parametrize("name", COUNTED)
def test_a_page_counts_the_same(name: str) -> None:
    shown = counted(to_text(report_document(Reading(ALL[name], full=True))))
    page = to_html(report_document(Reading(ALL[name], full=True, page=True)))
    listed = dict(re.findall(r'href="#(\w+)">[^<]+ <span class="dim">(\d+)</span></a>', page))
    if shown:
        assert page_figures(page) == shown
        assert listed.get("breaks", shown["Graph breaks"]) == shown["Graph breaks"]
        assert "recompiles" not in listed and "graphs" not in listed


@pytest.mark.parametrize("name", [*ALL])
def test_causes_have_the_same_numbers_everywhere(name: str) -> None:
    reading = Reading(ALL[name])
    causes = reading.causes
    assert [each.fingerprint for each in by_cost(findings(reading.digest))] == [
        each.fingerprint for each in causes
    ]
    text = to_text(explanation(Reading(ALL[name]), range(1, len(causes) + 1)), width=400)
    heads = re.findall(r"(?m)^  +(\d+) \S.* in \S+ ", text)
    assert heads == sorted(heads, key=int)
    table = next((p for p in report_document(Reading(ALL[name])).parts if p.id == "causes"), None)
    if table is not None:
        rows: Any = table.blocks[0]
        assert [row[0][0].text for row in rows.rows] == [str(n) for n in range(1, len(causes) + 1)]


@pytest.mark.parametrize("name", [*ALL])
def test_costs_add_up_to_no_more_than_the_compile_time(name: str) -> None:
    seen = digest(ALL[name])
    shares = compile_shares(ALL[name], seen)
    whole = sum(body.duration_ns for _, body in ALL[name].of(CompileTime)) / 1e9
    assert sum(each.seconds for each in shares) == pytest.approx(whole, abs=0.01)
    spent = sum(each.seconds or 0.0 for each in findings(seen))
    assert spent <= seen.compile_seconds + 0.01


def test_what_is_needed_is_told_beside_what_is_not() -> None:
    seen = digest(ALL["mixed"])
    (one,) = seen.recompiles
    causes = tuple(
        msgspec.structs.replace(each, needed=each.subject == "self.training") for each in one.causes
    )
    seen = msgspec.structs.replace(seen, recompiles=(msgspec.structs.replace(one, causes=causes),))
    (check,) = [each for each in judge(seen, NOTHING_LOST).checks if each.name == "recompiles"]
    assert check.message == "2 recompiles besides 1 needed, at most 0 allowed"
    assert figures(ALL["mixed"]).breaks == len(seen.sites)
