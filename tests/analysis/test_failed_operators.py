"""A backend's error that names an operator: the place is its call, the advice what torch says."""

from __future__ import annotations

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import CompileFailed, GraphCaptured
from compilescope.record.graph import Graph, Node, encode_graph
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef

NO_AUTOGRAD = (
    "RuntimeError: Trying to backward through mylib.scaled.default but no autograd formula was "
    "registered. Please use register_autograd to add one."
)


def run(message: str, *calls: tuple[str, int], text: str = "") -> Run:
    artifacts = MemoryArtifacts()
    nodes = [
        Node(f"n{at}", "call_function", target, frame=frame(line))
        for at, (target, line) in enumerate(calls)
    ]
    graph = artifacts.put(text or encode_graph(Graph(tuple(nodes))), "json")
    code = CodeRef(f"{ROOT}/model.py", 21, "forward")
    whole = f"backend='aot_eager' raised:\n{message}"
    failed = CompileFailed("BackendCompilerFailed", whole, backend="aot_eager", frame=code)
    captured = GraphCaptured("dynamo", text="", graph=graph, nodes=len(nodes), ops=len(nodes))
    stack = (frame(40), frame(21))
    events = [
        event(captured, stack=stack, compile_id="0/0"),
        event(failed, stack=stack, compile_id="0/0"),
    ]
    made = run_of(*events)
    return Run(made.header, made.events, artifacts)


def failure(run: Run) -> FailureFinding:
    (found,) = digest(run).failures
    return found


@pytest.mark.parametrize("name", ["mylib.scaled.default", "mylib::scaled"])
def test_it_points_at_the_call(name: str) -> None:
    message = NO_AUTOGRAD.replace("mylib.scaled.default", name)
    calls = (("torch._C._nn.linear", 22), ("mylib.scaled.default", 23))
    found = failure(run(message, *calls))
    assert (found.line, found.function) == (23, "forward")


def test_what_torch_says_to_do_comes_first() -> None:
    found = failure(run(NO_AUTOGRAD, ("mylib.scaled.default", 23)))
    first = found.remedy[0]
    assert first.kind == "program"
    assert 'torch.library.register_autograd("mylib::scaled", backward' in first.text
    assert "Torch says: Please use register_autograd to add one." in first.text


@pytest.mark.parametrize(
    "calls",
    [
        (),
        (("mylib.scaled.default", 23), ("mylib.scaled.default", 25)),
        (("mylib.other.default", 23),),
    ],
)
def test_in_doubt_the_function_is_the_place(calls: tuple[tuple[str, int], ...]) -> None:
    assert failure(run(NO_AUTOGRAD, *calls)).line == 21


def test_a_graph_that_cannot_be_read_changes_nothing() -> None:
    assert failure(run(NO_AUTOGRAD, text="no graph")).line == 21


def test_other_requests_of_an_error_are_repeated_too() -> None:
    found = failure(
        run("RuntimeError: no kernel for mylib.a. Please upgrade mylib to 2.1 or newer.")
    )
    assert found.remedy[0].text == "Do what the error says: Please upgrade mylib to 2.1 or newer."
    plain = failure(run("RuntimeError: it broke. Please report a bug to PyTorch."))
    assert "Do what the error says" not in plain.remedy[0].text
