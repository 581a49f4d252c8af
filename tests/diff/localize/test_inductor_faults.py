"""Faults planted in Inductor itself: the operation, and who is responsible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from compilescope.measure.diff.localize import localize

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.timeout(1500)]


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.sigmoid(self.up(x))
        return torch.tanh(self.down(inner))


@pytest.fixture
def spoilt_lowering() -> Iterator[None]:
    from torch._inductor.lowering import lowerings

    op = torch.ops.aten.sigmoid.default
    before = lowerings[op]

    def spoilt(x: Any) -> Any:
        return lowerings[torch.ops.aten.mul.Tensor](before(x), 1.01)

    lowerings[op] = spoilt
    yield
    lowerings[op] = before


@pytest.fixture
def spoilt_pass() -> Iterator[None]:
    from torch._inductor import config

    def tanh_for_sigmoid(graph: Any) -> None:
        for node in graph.nodes:
            if node.target is torch.ops.aten.sigmoid.default:
                node.target = torch.ops.aten.tanh.default

    with config.patch(post_grad_custom_post_pass=tanh_for_sigmoid):
        yield


def check_nothing_is_left() -> None:
    from torch._inductor.compiler_bisector import CompilerBisector

    assert not CompilerBisector.bisection_enabled
    assert CompilerBisector.get_backend() is None


def test_a_wrong_lowering(cxx: None, spoilt_lowering: None, capsys: Any) -> None:
    found = localize(Gate(), (torch.randn(3, 8),), test_backend="inductor")
    [guilty] = found.guilty
    assert guilty.target.endswith("sigmoid") and guilty.source.startswith("inner = torch.sigmoid")
    assert guilty.pass_name == "lowerings: sigmoid"
    assert guilty.trials > 0 and guilty.kernel is not None and "sigmoid" in guilty.kernel
    assert guilty.aten[0] == "aten.sigmoid.default"
    assert capsys.readouterr().out == "", "torch's bisector prints; nothing of that is seen"
    check_nothing_is_left()


def test_a_wrong_pass(cxx: None, spoilt_pass: None) -> None:
    found = localize(Gate(), (torch.randn(3, 8),), test_backend="inductor")
    [guilty] = found.guilty
    assert guilty.target.endswith("sigmoid")
    assert guilty.pass_name is not None and guilty.pass_name.startswith("post_grad_passes")
    check_nothing_is_left()


def test_inductor_is_not_accused(cxx: None) -> None:
    model = nn.Sequential(Gate(), nn.LayerNorm(8), nn.Dropout(0.2), Gate())
    found = localize(model, (torch.randn(3, 8),), test_backend="inductor", train=True)
    assert found.guilty == (), found
    assert found.compiles == 1
