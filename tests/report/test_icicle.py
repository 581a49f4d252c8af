"""The compile tree by time: no cell is wider than the one above it, and each leads to its cause."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileTime,
    FailedGuard,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.blocks import Bar, Block, Cell, Fold, Item, Timeline, Tree
from compilescope.report.document import report_document
from compilescope.report.render.html import tree_values
from compilescope.report.render.spans import round_ticks
from compilescope.report.section import Reading
from compilescope.report.sections.tree import SECTION
from samples import RUNS, big_run

FILE = f"{ROOT}/model.py"
MAIN = frame(50, function="main", source="model(x)")
MS = 1_000_000


def compiled(
    compile_id: str, code: CodeRef, line: int = 0, *, ms: int = 10, again: bool = False
) -> list[Event]:
    """One compilation; with a break at `line`, where one is given."""
    own = frame(line, function=code.function, source="    call(x)")
    callers = (MAIN, frame(code.resumed_at, function=code.function)) if code.resumed_at else (MAIN,)
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3", frame=frame())
    bodies = [(Recompile(code, (CacheEntryMiss("0/0", (guard,)),)), callers)] if again else []
    bodies += [(GraphBreak("x", "GB0170", frame=code), (MAIN, own))] if line else []  # type: ignore[list-item]
    graph = GraphCaptured(stage="dynamo", ops=1, frame=code, ended_by_break=bool(line))
    bodies += [(graph, ()), (CompileTime(ms * MS, frame=code), callers)]  # type: ignore[list-item]
    return [event(body, compile_id=compile_id, stack=stack) for body, stack in bodies]


def cells_of(run: Run) -> tuple[Cell, ...]:
    (tree,) = (b for b in SECTION.build(Reading(run, full=True)) if isinstance(b, Tree))
    return tree.cells


def all_cells(cells: tuple[Cell, ...]) -> Iterator[Cell]:
    for cell in cells:
        yield cell
        yield from all_cells(cell.cells)


def test_a_function_is_as_wide_as_all_that_it_led_to() -> None:
    first, rest = CodeRef(FILE, 6, "forward"), CodeRef(FILE, 6, "forward", 8)
    run = run_of(
        *compiled("0/0", first, 8, ms=100),
        *compiled("1/0", rest, ms=30),
        *compiled("1/1", rest, ms=50, again=True),
    )
    (top,) = cells_of(run)
    assert (top.label, top.duration_ns, top.kind) == ("forward (model.py:6)", 180 * MS, "break")
    (below,) = top.cells
    assert (below.label, below.kind) == ("forward (from line 8)", "function")
    assert [(c.label, c.duration_ns, c.kind) for c in below.cells] == [
        ("1/0", 30 * MS, "first"),
        ("1/1", 50 * MS, "recompile"),
    ]
    digest = Reading(run, full=True).digest
    assert top.target == digest.sites[0].fingerprint
    assert below.target == below.cells[1].target == f"recompile-{digest.recompiles[0].because[0]}"
    assert below.cells[0].target.startswith("graph-")


def test_where_no_time_is_known_only_the_tree_is_drawn() -> None:
    code = CodeRef(FILE, 6, "forward")
    run = run_of(event(GraphCaptured(stage="dynamo", ops=1, frame=code), compile_id="0/0"))
    assert cells_of(run) == ()
    assert tree_values(Tree(()))["cells"] == []


def test_a_long_chain_of_breaks_stays_shallow_and_bounded() -> None:
    events = []
    for number in range(600):
        code = CodeRef(FILE, 6, "forward", number + 10 if number else None)
        events += compiled(f"{number}/0", code, number + 11)
    (top,) = cells_of(run_of(*events))
    every = list(all_cells((top,)))
    assert 200 < len(every) <= 300
    assert top.duration_ns == 6000 * MS
    values = tree_values(Tree((), (top,)))
    assert values["height"] < 20 * 22


@pytest.mark.parametrize("name", RUNS)
def test_a_cell_holds_what_is_below_it(name: str) -> None:
    for part in report_document(Reading(RUNS[name], full=True)).parts:
        for block in part.blocks:
            for cell in all_cells(block.cells) if isinstance(block, Tree) else ():
                assert cell.duration_ns >= sum(below.duration_ns for below in cell.cells)


@pytest.mark.parametrize("name", [*RUNS, "big"])
def test_bars_and_cells_lead_to_items_that_are_there(name: str) -> None:
    run = big_run(graphs=60, events=600) if name == "big" else RUNS[name]
    document = report_document(Reading(run, full=True))
    blocks = [block for part in document.parts for block in part.blocks]
    anchors = set(_anchors(blocks))
    bars: list[Bar] = []
    cells: list[Cell] = []
    for block in blocks:
        if isinstance(block, Timeline):
            bars += [bar for lane in block.lanes for bar in lane.bars]
        if isinstance(block, Tree):
            cells += all_cells(block.cells)
    targets = {one.target for one in [*bars, *cells] if one.target}
    assert targets <= anchors
    assert bool(targets) == bool(bars)


def _anchors(blocks: list[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Item):
            yield block.anchor
        if isinstance(block, (Item, Fold)):
            yield from _anchors(list(block.blocks))


@pytest.mark.parametrize(
    ("whole_ns", "labels"),
    [
        (5_100 * MS, ["0", "1 s", "2 s", "3 s", "4 s", "5 s"]),
        (2_000 * MS, ["0", "0.5 s", "1.0 s", "1.5 s", "2.0 s"]),
        (40 * MS, ["0", "5 ms", "10 ms", "15 ms", "20 ms", "25 ms", "30 ms", "35 ms", "40 ms"]),
        (1, ["0", "0.0002 us", "0.0004 us", "0.0006 us", "0.0008 us", "0.0010 us"]),
    ],
)
def test_ticks_are_round(whole_ns: int, labels: list[str]) -> None:
    assert [label for _, label in round_ticks(whole_ns)] == labels


def test_a_single_compilation_needs_no_chart() -> None:
    assert cells_of(run_of(*compiled("0/0", CodeRef(FILE, 6, "forward")))) == ()
