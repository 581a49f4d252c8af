"""Gradients, steps of optimizers, and backends that are wrong only there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from compilescope import KernelDiffHarness
from compilescope.base.errors import ToolError
from compilescope.measure.diff.runs.trial import find_loss, find_optimizer

pytestmark = pytest.mark.torch
X = torch.linspace(-2, 2, 32).reshape(4, 8)


def compared(model: Any, example: Any = X, backend: Any = "aot_eager", **options: Any) -> Any:
    torch.manual_seed(0)
    return KernelDiffHarness(model, example, test_backend=backend, train=True, **options).compare()


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 1.01


def backward_off(graph: Any, inputs: Any) -> Any:
    def run(*args: Any) -> Any:
        return [_Scaled.apply(r) if r.requires_grad else r for r in graph(*args)]

    return run


def detaching(graph: Any, inputs: Any) -> Any:
    return lambda *args: [result.detach() for result in graph(*args)]


def keeping_weights(graph: Any, inputs: Any) -> Any:
    """Computes with the weights that it was compiled for."""
    kept: dict[int, torch.Tensor] = {}

    def run(*args: Any) -> Any:
        given = list(args)  # A size may be among them, where it is dynamic.
        for number, arg in enumerate(args):
            if isinstance(arg, nn.Parameter):
                stale = kept.setdefault(number, arg.detach().clone())
                given[number] = arg + (stale - arg).detach()
        return graph(*given)

    return run


def test_a_right_backend_passes() -> None:
    report = compared(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.2)))
    assert report.verdict == "pass", report.summary()
    assert set(report.to_dict()["gradients"]) == {
        *("grad of 0.weight", "grad of 0.bias", "grad of 1.weight", "grad of 1.bias"),
        "grad of args[0]",
        *("0.weight after the step", "0.bias after the step"),
        *("1.weight after the step", "1.bias after the step"),
        "output after the step",
    }


@pytest.mark.parametrize("model", [nn.Linear(8, 8), nn.Softmax(-1)])
def test_a_wrong_backward_pass_fails_and_the_forward_does_not(model: nn.Module) -> None:
    assert KernelDiffHarness(model, X, test_backend=backward_off).compare().verdict == "pass"
    report = compared(model, X, backward_off)
    assert report.verdict == "fail", report.summary()
    wrong = [diff for diff in report.diffs if diff.verdict == "fail"]
    assert {diff.kind for diff in wrong} <= {"gradient", "step"}


def test_a_gradient_that_is_lost_fails() -> None:
    report = compared(nn.Linear(8, 8), X, detaching)
    assert report.verdict == "fail"
    assert "no output requires a gradient" in report.reason


def test_weights_that_are_kept_from_before_the_step_fail() -> None:
    report = compared(nn.Linear(8, 8), X, keeping_weights, optimizer="sgd")
    assert report.verdict == "fail", report.summary()
    wrong = [diff.path for diff in report.diffs if diff.verdict == "fail"]
    assert wrong == ["output after the step"], report.summary()


def test_inputs_that_the_model_writes_into() -> None:
    report = compared(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(8, 8)))
    assert report.verdict == "pass", report.summary()
    assert "args[0] after the call" in report.to_dict()["outputs"]
    assert any("gradients were not compared" in note for note in report.notes)


def test_a_loss_in_the_output_is_what_is_trained() -> None:
    class Lossy(nn.Linear):
        def forward(self, x: torch.Tensor) -> dict[str, Any]:
            out = super().forward(x)
            return {"loss": out.square().mean(), "other": out}

    model = Lossy(8, 8)
    report = compared(model)
    assert report.verdict == "pass", report.summary()
    loss = find_loss(model(X))
    assert loss is not None and loss.dim() == 0
    assert find_loss((X, X)) is None


def test_a_step_written_by_the_user() -> None:
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    before = model.weight.detach().clone()
    report = KernelDiffHarness(step, X, test_backend="eager").compare()
    assert report.verdict == "pass", report.summary()
    assert any("weight after the call" in diff.path for diff in report.diffs)
    assert torch.equal(model.weight, before)
    assert not optimizer.state


def test_optimizers_by_name_class_and_function() -> None:
    weight = [torch.zeros(2, requires_grad=True)]
    assert isinstance(find_optimizer("adamw")(weight), torch.optim.AdamW)
    assert isinstance(find_optimizer(torch.optim.Adam)(weight), torch.optim.Adam)
    with pytest.raises(ToolError, match="adamm"):
        find_optimizer("adamm")
    with pytest.raises(ToolError, match="returned an object of type int"):
        find_optimizer(lambda parameters: 3)(weight)


def test_nothing_to_train_is_said() -> None:
    with pytest.raises(ToolError, match="no output requires a gradient"):
        compared(lambda x: x > 0)


def test_a_gradient_that_is_changed_in_an_argument() -> None:
    """Not what `backward` computes, but what the call does to a gradient that is there already."""

    def scale(weight: torch.Tensor) -> torch.Tensor:
        assert weight.grad is not None
        weight.grad.mul_(2.0)
        return weight.grad.sum()

    def forgetting(graph: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            kept = [(a, a.clone()) for a in args if isinstance(a, torch.Tensor)]
            results = graph(*args)
            for tensor, before in kept:
                tensor.data.copy_(before)
            return results

        return run

    weight = nn.Parameter(torch.ones(3))
    weight.grad = torch.arange(3.0)
    same = KernelDiffHarness(scale, (weight,), test_backend="eager").compare()
    wrong = KernelDiffHarness(scale, (weight,), test_backend=forgetting).compare()
    assert same.passed and not wrong.passed
    assert weight.grad.tolist() == [0, 1, 2]
