"""What a run captured, line by line."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

import compilescope
from compilescope.repair.trials.losses import captured_lines

pytestmark = pytest.mark.torch


def test_an_operator_that_gives_nothing_is_no_number() -> None:
    @torch.library.custom_op("losses_test::note", mutates_args=())
    def note(x: torch.Tensor) -> None:
        pass

    note.register_fake(lambda x: None)

    def step(x: torch.Tensor) -> torch.Tensor:
        note(x)
        size = x.shape[0] * 2
        return x * size

    torch._dynamo.reset()
    with compilescope.capture() as seen:
        torch.compile(step, backend="eager", dynamic=True)(torch.ones(3))
    torch._dynamo.reset()
    first = step.__code__.co_firstlineno
    lines = {line - first for _, line in captured_lines(seen.run, numbers=False)}
    assert {1, 3} <= lines
    assert 2 not in lines
    assert 2 in {line - first for _, line in captured_lines(seen.run)}
