"""What each line lost, from digests alone."""

from __future__ import annotations

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.line_costs import (
    LineAmount,
    captured_lines,
    file_losses,
    stripes,
)
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.graph import Graph, Node, encode_graph
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from samples import full_run, with_artifacts

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")
LIBRARY = "/usr/lib/python3/site-packages/lib/layer.py"


def numbered(*events: Event) -> Run:
    return run_of(*events)


def broken(line: int, file: str = CODE.file) -> Event:
    code = CodeRef(file, 6, "forward")
    return event(
        GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=code),
        stack=(frame(line, file=file),),
    )


def recompiled(*guards: tuple[str, int]) -> Event:
    failed = tuple(
        FailedGuard(f"{subject} == 2", subject, "2", "3", frame=frame(line))
        for subject, line in guards
    )
    return event(Recompile(CODE, (CacheEntryMiss("0/0", failed),)), stack=(frame(1),))


def test_reports_of_a_break_are_counted_on_its_line() -> None:
    (loss,) = file_losses(digest(numbered(broken(8), broken(8), broken(9))))
    assert [(line.line, line.breaks) for line in loss.lines] == [(8, 2), (9, 1)]
    assert loss.own and loss.file == CODE.file
    assert loss.lines[0].compile_seconds is None and loss.lines[0].lost_ms is None


def test_a_recompile_counts_on_the_line_that_made_the_guard() -> None:
    run = numbered(recompiled(("x.size()[0]", 7)), recompiled(("x.size()[0]", 7), ("self.n", 9)))
    (loss,) = file_losses(digest(run))
    amounts = {line.line: line.recompiles for line in loss.lines}
    # What failed with it is told beside it, and costs nothing of its own.
    assert amounts == {7: LineAmount(2)}


def test_guards_that_failed_together_are_never_counted_twice() -> None:
    apart = numbered(recompiled(("x.size()[0]", 7)), recompiled(("self.n", 7)))
    (loss,) = file_losses(digest(apart))
    assert loss.lines[0].recompiles == LineAmount(2)
    together = numbered(*[recompiled(("x.size()[0]", 7), ("self.n", 7))] * 2)
    (loss,) = file_losses(digest(together))
    assert loss.lines[0].recompiles == LineAmount(2)


def test_own_files_come_before_libraries() -> None:
    run = numbered(*[broken(3, LIBRARY)] * 3, broken(8))
    assert [(loss.file, loss.own) for loss in file_losses(digest(run))] == [
        (CODE.file, True),
        (LIBRARY, False),
    ]


def test_every_kind_is_on_its_line() -> None:
    (loss,) = file_losses(digest(full_run()))
    lines = {line.line: line for line in loss.lines}
    assert lines[8].breaks == 1 and lines[8].failures == 1 and lines[8].recompiles.value == 1
    assert [each.function for each in lines[6].eager] == ["forward"] * len(lines[6].eager)


def test_a_cause_without_a_place_has_no_line() -> None:
    assert file_losses(digest(numbered(event(CompileFailed("RuntimeError", "no"))))) == []


def test_lines_in_graphs_are_those_of_their_operations() -> None:
    run = run_of()
    artifacts = run.artifacts
    nodes = (
        Node("x", "placeholder", "x", frame=frame(6)),
        Node("add", "call_function", "add", frame=frame(7), stack=0),
        Node("odd", "call_function", "add", stack=9),
    )
    name = artifacts.put(encode_graph(Graph(nodes, ((frame(20), frame(7)),))), "json")
    broken_name = artifacts.put("not a graph", "json")
    bodies = [
        GraphCaptured("dynamo", graph=name),
        GraphCaptured("dynamo", graph=broken_name),
        GraphCaptured("aot_forward", graph=broken_name),
    ]
    run = with_artifacts(run_of(*(event(body) for body in bodies)), artifacts)  # type: ignore[arg-type]
    assert captured_lines(run) == {CODE.file: {7, 20}}


def eager(line: int, cause: str = "graph-break", *, rest: bool = False) -> EagerFinding:
    return EagerFinding(
        file=CODE.file, line=line, function="f", reason="r", cause=cause, gb_id=None,
        rest_only=rest, may_hide_breaks=False, fingerprint="", ranks=(0,), because=("0.1",),
    )  # fmt: skip


def test_stripes_say_only_what_is_known() -> None:
    spans = [(2, 6), (4, 5), (8, 9)]
    assert stripes([eager(2)], {9}, spans) == {2: "eager", 3: "eager", 6: "eager", 9: "graph"}
    # Captured in some calls: neither word would be true of all.
    assert set(stripes([eager(8)], {9}, spans).values()) == {"both"}
    assert set(stripes([eager(8, "recompile-limit")], set(), spans).values()) == {"both"}
    assert stripes([eager(8, rest=True)], set(), spans) == {}


def test_a_skipped_function_stands_on_its_first_line() -> None:
    run = numbered(event(FrameSkipped(CODE, "dispatch-mode", "a mode is on"), stack=(frame(30),)))
    (loss,) = file_losses(digest(run))
    assert [(line.line, len(line.eager)) for line in loss.lines] == [(6, 1)]
