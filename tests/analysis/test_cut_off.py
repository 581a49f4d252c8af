"""A run that was killed counts what was compiled, and not what had only begun."""

from __future__ import annotations

from builders import ROOT, event, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.dynamo_graphs import graph_count
from compilescope.knowledge.findings.eager import eager_frames
from compilescope.record.bodies import CompileTime, FrameSkipped, GraphCaptured
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef

CODE = CodeRef(f"{ROOT}/model.py", 3, "forward")


def graph(compile_id: str) -> Event:
    return event(GraphCaptured("dynamo", ops=1, frame=CODE, region=CODE), compile_id=compile_id)


def test_a_compilation_that_had_only_begun_is_no_graph() -> None:
    done = event(CompileTime(5, frame=CODE), compile_id="0/0")
    killed = run_of(graph("0/0_1"), done, graph("1/0"), ended=False, launcher_pid=None, signal=9)
    assert graph_count(killed) == digest(killed).graphs == 1
    ended = run_of(graph("0/0"), done, graph("1/0"))
    assert graph_count(ended) == digest(ended).graphs == 2


def test_frames_of_the_standard_library_are_not_the_users() -> None:
    lost = [
        event(FrameSkipped(CodeRef(file, 487, "<genexpr>"), "generator", "a generator"))
        for file in ("<frozen _collections_abc>", "/usr/lib/python3.11/contextlib.py")
    ]
    own = event(FrameSkipped(CODE, "generator", "a generator"))
    (found,) = eager_frames(run_of(*lost, own))
    assert found.function == "forward"
