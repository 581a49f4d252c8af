"""Several inputs on one compiled model, graphs after a graph break, and backends that count."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F
from torch import nn

from compilescope import KernelDiffHarness
from compilescope.base.errors import ToolError
from compilescope.measure.diff.input_sets import variants
from compilescope.measure.diff.localize import localize
from compilescope.measure.tensors.copies import CopiedArguments
from compilescope.record.bodies import TensorDiff

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Broken(nn.Module):
    """Three graphs: relu is in each."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.up(x))
        torch._dynamo.graph_break()
        h = torch.relu(h - 0.1) + F.gelu(h)
        torch._dynamo.graph_break()
        return torch.relu(h * 2 - 0.1) + 1


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.up(x)).sum(0)


def change(graph: Any, old: Any, new: Any) -> Any:
    for node in graph.graph.nodes:
        if node.target is old:
            node.target = new
    graph.recompile()
    return graph.forward


class Counting:
    """Gets relu wrong in the graphs whose number `picks`."""

    def __init__(self, picks: Callable[[int], bool]) -> None:
        self.calls = 0
        self.picks = picks

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.calls += 1
        return change(graph, torch.relu, torch.tanh if self.picks(self.calls) else torch.relu)


class Shared:
    """The same with the count in its class."""

    calls = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        type(self).calls += 1
        return change(graph, torch.relu, torch.tanh if self.calls == 3 else torch.relu)


def attributed(graph: Any, inputs: Any) -> Any:
    attributed.calls += 1  # type: ignore[attr-defined]
    third = attributed.calls == 3  # type: ignore[attr-defined]
    return change(graph, torch.relu, torch.tanh if third else torch.relu)


attributed.calls = 0  # type: ignore[attr-defined]


def enclosed() -> Any:
    calls = 0

    def backend(graph: Any, inputs: Any) -> Any:
        nonlocal calls
        calls += 1
        return change(graph, torch.relu, torch.tanh if calls == 3 else torch.relu)

    return backend


def by_compile_id(graph: Any, inputs: Any) -> Any:
    from torch._guards import CompileContext

    now = CompileContext.current_compile_id()
    resumed = now is not None and now.frame_id == 2
    return change(graph, torch.relu, torch.tanh if resumed else torch.relu)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Counting(lambda n: n > 2), id="all after the second"),
        pytest.param(enclosed, id="closure"),
        pytest.param(lambda: Counting(lambda n: n == 3), id="the third", marks=pytest.mark.slow),
        pytest.param(Shared, id="class", marks=pytest.mark.slow),
        pytest.param(lambda: attributed, id="function", marks=pytest.mark.slow),
        pytest.param(lambda: by_compile_id, id="compile id", marks=pytest.mark.slow),
    ],
)
def test_the_graph_after_a_break(make: Callable[[], Any]) -> None:
    backend = make()
    harness = KernelDiffHarness(Broken(), torch.randn(4, 8), test_backend=backend)
    report = harness.compare(localize=True)
    # Localizing leaves the backend as it was.
    assert getattr(backend, "calls", 3) == 3
    [found] = report.guilty
    assert found.source == "return torch.relu(h * 2 - 0.1) + 1", report.summary()
    assert (found.target, found.stage) == ("torch.relu", "forward")
    assert found.frame.startswith("forward (from line ") and found.compile_id
    assert f"graph {found.compile_id} of forward (from line" in report.summary()
    assert report.to_dict()["guilty"][0]["compile_id"] == found.compile_id


@pytest.mark.slow
def test_localizing_alone_asks_a_counting_backend_as_it_was_asked() -> None:
    backend = Counting(lambda n: n == 3)
    found = localize(Broken(), (torch.randn(4, 8),), test_backend=backend)
    [guilty] = found.guilty
    assert guilty.source == "return torch.relu(h * 2 - 0.1) + 1"


def symbolic(inputs: Any) -> bool:
    return any(isinstance(value, torch.SymInt) for value in inputs)


def wrong_if_symbolic(graph: Any, inputs: Any) -> Any:
    return change(graph, torch.relu, torch.tanh if symbolic(inputs) else torch.relu)


def sizes(model: type[nn.Module], *values: int) -> Callable[[], Any]:
    """A builder whose calls return inputs of these sizes in turn."""
    rows = itertools.cycle(values)
    return lambda: (model(), (torch.randn(next(rows), 8),))


@pytest.mark.parametrize(
    "model, operations", [(Small, 1), pytest.param(Broken, 3, marks=pytest.mark.slow)]
)
def test_a_bug_that_needs_a_second_shape(model: type[nn.Module], operations: int) -> None:
    build = sizes(model, 4, 4, 7, 9)
    harness = KernelDiffHarness.from_build(build, 4, test_backend=wrong_if_symbolic)
    report = harness.compare(localize=True)
    assert [each.verdict for each in report.input_sets] == ["pass", "pass", "fail", "fail"]
    assert report.inputs == 4
    third = report.input_sets[2]
    assert third.words == "args[0] is [7, 8]"
    assert third.compiles[0].recompiled and third.compiles[0].symbolic
    assert "size mismatch" in third.compiles[0].reason
    assert report.input_sets[1].compiled == report.input_sets[3].compiled == "no new compile"
    assert all(found.input == 3 and found.symbolic for found in report.guilty)
    assert len({found.line for found in report.guilty}) == len(report.guilty) == operations
    text = report.summary()
    assert "input 3 (args[0] is [7, 8])  differs  recompiled" in text
    assert "symbolic sizes, on input 3" in text
    assert json.loads(report.to_json())["input_sets"][2]["compiles"][0]["symbolic"] is True
    wrong = [body for _, body in report.run.of(TensorDiff) if body.verdict == "fail"]
    assert wrong[0].input.startswith("input 3 (args[0] is [7, 8]): recompiled")


def test_in_training_only_the_gradient_of_the_second_shape() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return torch.relu(x)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return gradient * (x > 0) * 1.01

    def off(x: torch.Tensor) -> Any:
        return Wrong.apply(x)

    def backend(graph: Any, inputs: Any) -> Any:
        return change(graph, torch.relu, off if symbolic(inputs) else torch.relu)

    report = KernelDiffHarness(
        Small(), torch.randn(4, 8), inputs=[torch.randn(6, 8)], test_backend=backend, train=True
    ).compare(localize=True)
    assert [each.verdict for each in report.input_sets] == ["pass", "fail"]
    [found] = report.guilty
    assert (found.stage, found.input, found.target) == ("backward", 2, "torch.relu")
    assert found.source == "return torch.relu(self.up(x)).sum(0)"


def test_sets_that_are_given_repeated_or_generated() -> None:
    x = torch.randn(4, 8)

    def harness(**more: Any) -> Any:
        return KernelDiffHarness(torch.relu, x, test_backend="eager", **more).compare()

    given = harness(inputs=[{"input": torch.randn(4, 8)}, (torch.randn(5, 8),)])
    assert [each.words for each in given.input_sets] == ["", "input is [4, 8]", "args[0] is [5, 8]"]
    # What was compared before is not compared again.
    again = harness(inputs=[x.clone(), x.clone()])
    words = [each.words for each in again.input_sets]
    assert words == ["", "other values", "another first size"]
    alike = harness(inputs=[torch.randn(4, 8)])
    assert any("the same shapes" in note for note in alike.notes)
    more = harness(inputs=[torch.randn(4, 8)], variants=2)
    assert more.inputs == 4 and not any("the same shapes" in note for note in more.notes)
    with pytest.raises(ToolError, match="Input 2: the reference fails"):
        harness(inputs=["x"])
    with pytest.raises(ToolError, match="variants is -1"):
        harness(variants=-1)


def test_a_builder_that_fails_later(tmp_path: Path) -> None:
    made = iter([(torch.relu, (torch.ones(2),))])
    with pytest.raises(ToolError, match="build failed in call 2: StopIteration"):
        KernelDiffHarness.from_build(lambda: next(made), 2)


def test_made_up_inputs_keep_to_what_the_given_ones_mean() -> None:
    """Indices stay in range, masks and complex numbers are drawn from those that are there."""
    ids = torch.tensor([[3, 9], [7, 5]])
    mask = torch.tensor([True, True])
    scores = torch.tensor([0.0, float("-inf"), 0.0, 0.0, 0.0, 0.0])
    phase = torch.tensor([1j, 2 + 1j])
    empty = torch.empty(0, dtype=torch.int64)
    copied = CopiedArguments((ids, mask, scores, phase, empty), {}, ())
    for _, (made, on, drawn, turned, nothing), _ in variants(copied, 7, seed=1):
        assert int(made.min()) >= 3 and int(made.max()) <= 9 and made.dtype == torch.int64
        assert bool(on.all()) and set(drawn.tolist()) <= {0.0, float("-inf")}
        assert set(turned.tolist()) <= {1j, 2 + 1j} and nothing.shape == (0,)
        assert made.shape[0] == on.shape[0] == turned.shape[0] >= 2
