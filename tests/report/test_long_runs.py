"""What is drawn of a long run takes work in proportion to it: lines of code are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.change.fixes.advice import advised
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import distinct
from compilescope.knowledge.analysis.line_costs import LineAmount, file_losses
from compilescope.knowledge.analysis.ranks import compare_ranks
from compilescope.knowledge.analysis.timeline.lanes import phase_times, timeline
from compilescope.knowledge.analysis.tree.compile_tree import compile_tree
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompilePhases,
    CompileTime,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    Phase,
    ProcessStarted,
    Recompile,
)
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import Branch, MarkedLine, MarkedLines, SourceFile, Tree, plain
from compilescope.report.render.source_file import source_file_values
from compilescope.report.section import Reading
from compilescope.report.sections import tree

FILE = f"{ROOT}/model.py"
CODE = CodeRef(FILE, 1, "forward")


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of ours are run, a loop's each time."""
    count = 0

    def note(at: FrameType, what: str, _: object) -> Any:
        nonlocal count
        count += what == "line"
        return note if "compilescope" in at.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def broken(line: int, reason: str = "", code: CodeRef = CODE) -> GraphBreak:
    kind = f"Reason {reason}" if reason else "Data-dependent branching"
    return GraphBreak(kind, frame=code, within=code, outcome="resumed")


def at(line: int) -> Any:
    return frame(line, function="forward", source="    y = f(x)")


def breaks_of_one_function(size: int) -> Run:
    return run_of(
        *(
            event(broken(n, str(n)), number=n, time_ns=n, compile_id="0/0", stack=(at(n),))
            for n in range(2, size)
        )
    )


def rests_of_one_function(size: int) -> Run:
    told = [event(broken(n), number=n, time_ns=n, compile_id="0/0", stack=(at(n),))
            for n in range(2, size)]  # fmt: skip
    for n in range(2, size):
        rest = CompileTime(5, frame=CodeRef(FILE, 1, "forward", n))
        place = {"number": size + n, "time_ns": size + n, "compile_id": f"{n}/0"}
        told.append(event(rest, stack=(at(n),), **place))
    return run_of(*told)


def calls_of_one_function(size: int) -> Run:
    """It is compiled again and again, and so is what it calls."""
    helper = CodeRef(f"{ROOT}/helper.py", 1, "helper")
    told = []
    for n in range(size):
        place = {"epoch": 1, "number": 2 * n, "time_ns": 2 * n}
        told.append(event(CompileTime(5, frame=CODE), compile_id=f"{2 * n}/0", **place))
        place = {"epoch": 1, "number": 2 * n + 1, "time_ns": 2 * n + 1}
        called = CompileTime(5, frame=helper)
        told.append(event(called, compile_id=f"{2 * n + 1}/0", stack=(at(8), at(9)), **place))
    return run_of(*told)


def reasons_of_one_function(size: int) -> Run:
    return run_of(
        *(
            event(FrameSkipped(CODE, "config", f"reason {n}"), number=n, time_ns=n)
            for n in range(size)
        )
    )


def alike_entry_points(size: int) -> Run:
    return run_of(
        *(
            event(CompileTime(5, frame=CODE), number=n, time_ns=n, epoch=n, compile_id=f"{n}/0")
            for n in range(size)
        )
    )


@pytest.mark.parametrize(
    "make",
    [
        breaks_of_one_function,
        rests_of_one_function,
        calls_of_one_function,
        reasons_of_one_function,
        alike_entry_points,
    ],
)
def test_a_tree_is_linear(make: Callable[[int], Run]) -> None:
    once, twice = (lines_run(lambda run=make(n): compile_tree(run)) for n in (100, 200))  # type: ignore[misc]
    assert twice < 2.3 * once


def test_phases_in_phases_are_linear() -> None:
    def nested(size: int) -> Run:
        phases = (Phase("dynamo", n, 10_000 - 2 * n, depth=n) for n in range(size))
        return run_of(event(CompilePhases(tuple(phases)), compile_id="0/0"))

    def draw(run: Run) -> None:
        phase_times(timeline(run))

    once, twice = (lines_run(lambda run=nested(n): draw(run)) for n in (100, 200))  # type: ignore[misc]
    assert twice < 2.3 * once


def test_a_source_file_is_linear_in_what_is_marked() -> None:
    def file(size: int) -> SourceFile:
        parts = tuple(MarkedLines(2 * n + 1, ("y = f(x)",)) for n in range(size))
        marked = tuple(MarkedLine(2 * n + 1, (), 4, 8) for n in range(size))
        return SourceFile("model.py", 1, "", (), parts, marked)

    source_file_values(file(3))
    once, twice = (
        lines_run(lambda block=file(n): source_file_values(block))  # type: ignore[misc]
        for n in (80, 160)
    )
    assert twice < 2.3 * once


def test_an_expression_of_several_lines_is_underlined_in_all_of_them() -> None:
    lines = ("y = f(", "    x,", "", "    z)", "w = y")
    marked = (MarkedLine(1, (), 4, 6, 4), MarkedLine(5, (), 0, 1))
    values = source_file_values(SourceFile("model.py", 1, "", (), (MarkedLines(1, lines),), marked))
    (rows,) = values["parts"]
    assert ["<mark" in str(row.code) for row in rows] == [True, True, True]
    assert "".join(str(row.code) for row in rows).count("<mark") >= 4


def test_the_same_cause_over_and_over_is_joined_once() -> None:
    run = run_of(event(broken(8), compile_id="0/0", stack=(at(8),)))
    (one,) = digest(run).sites
    (joined,) = distinct([one] * 300)
    assert joined.count == 300 * one.count
    assert joined.because == one.because
    assert lines_run(lambda: distinct([one] * 600)) < 2.3 * lines_run(lambda: distinct([one] * 300))


def test_ranks_are_counted_and_not_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    started = ProcessStarted(argv=("a.py",), python="3.11", torch="2.13.0", parent_pid=1)
    told = [event(started, number=n, rank=n, pid=n + 1) for n in range(3)]
    told += [
        event(broken(8), number=10 + n, rank=n % 3, pid=n % 3 + 1, compile_id="0/0", stack=(at(8),))
        for n in range(6)
    ]
    run = run_of(*told)
    expected = compare_ranks(run)
    asked: list[object] = []
    monkeypatch.setattr(Sources, "spot", lambda _, place: asked.append(place))
    assert compare_ranks(run, causes=()) is not None
    assert not asked
    assert expected is not None
    assert [rank.sites for rank in expected.ranks] == [1, 1, 1]


def test_a_tree_says_how_many_breaks_it_leaves_out() -> None:
    (block, *_) = tree.SECTION.build(Reading(breaks_of_one_function(252), full=True))
    assert isinstance(block, Tree)
    (root,) = block.branches
    assert [_text(branch) for branch in root.branches[-2:]][-1] == "and 150 more graph breaks"
    assert len(root.branches) == 101


def _text(branch: Branch) -> str:
    return plain(branch.words)


def test_fixes_read_a_bounded_amount_of_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilescope.change.fixes.advice._MOST_READ", 50_000)
    run = breaks_of_one_function(202)
    sites = advised(run, digest(run)).sites
    asked = [site for site in sites if site.advice[:1] and site.advice[0].status != "not tried"]
    assert 0 < len(asked) <= 50
    assert any(site.advice[0].status == "not tried" for site in sites if site.advice)


def test_guards_made_on_one_line_are_linear() -> None:
    """As many functions as one likes were compiled again for them."""

    def on_one_line(size: int) -> Run:
        told = []
        for n in range(size):
            failed = FailedGuard(f"x{n} == 1", f"x{n}", "1", "2", "EQUALS_MATCH", at(8))
            again = Recompile(CodeRef(FILE, n, f"f{n}"), (CacheEntryMiss("0/0", (failed,)),))
            told.append(event(again, number=n, time_ns=n, compile_id=f"{n}/1", stack=(at(8),)))
        return run_of(*told)

    seen = [digest(on_one_line(n), explained=False) for n in (100, 200)]
    once, twice = (lines_run(lambda each=each: file_losses(each)) for each in seen)  # type: ignore[misc]
    assert twice < 2.3 * once
    ((line,),) = (file.lines for file in file_losses(seen[0]))
    assert line.recompiles == LineAmount(100)
