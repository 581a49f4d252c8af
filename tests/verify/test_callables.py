"""`compilescope.verify` in a test: two functions or modules, on given inputs and on others."""

from __future__ import annotations

import copy

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402
from compilescope.base.errors import ToolError  # noqa: E402


def masked(x, mask):
    return x.masked_fill(mask, 0.0).sum(1)


def branching(x, mask):
    y = x.masked_fill(mask, 0.0).sum(1)
    if y.sum() > 1e9:
        return y
    return y * 1.0


def _inputs():
    mask = torch.zeros(3, 4, dtype=torch.bool)
    mask[0] = True
    return [(torch.randn(3, 4, requires_grad=True), mask)]


def test_the_same_in_other_words() -> None:
    found = compilescope.verify(branching, masked, _inputs)
    assert (found.breaks_before, found.breaks_after) == (1, 0)
    assert found.gradients
    assert found.calls == 1
    assert {"the recorded inputs", "all values 0", "NaN among the values"} <= set(found.inputs)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda x, mask: x.sum(1), "output"),
        (lambda x, mask: (x * ~mask).sum(1), "finite|NaN"),
        (lambda x, mask: masked(x.detach(), mask), "grad of args"),
        (lambda x, mask: masked(x, mask).double(), "float64"),
        (lambda x, mask: masked(x.nan_to_num(), mask), "finite"),
        (lambda x, mask: (mask.fill_(True), masked(x, mask))[1], r"args\[1\]|output"),
        (lambda x, mask: masked(x, mask)[None], "output"),
        (lambda x, mask: print("x") or masked(x, mask), "prints"),
    ],
)
def test_what_differs_is_an_assertion(other, words: str) -> None:
    inputs = _inputs()
    with pytest.raises(AssertionError, match=words):
        compilescope.verify(masked, other, inputs)
    assert inputs[0][1].sum() == 4  # What was given is as it was.


def test_worse_is_one_too_unless_it_may_be() -> None:
    with pytest.raises(AssertionError, match="0 -> 1 graph breaks"):
        compilescope.verify(masked, branching, _inputs)
    assert compilescope.verify(masked, branching, _inputs, allow_worse=True).breaks_after == 1


def test_modules_and_their_state() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin = torch.nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, x):
            self.seen += 1
            return self.lin(x)

    class Forgetting(Counting):
        def forward(self, x):
            return self.lin(x)

    before = Counting()
    after, other = Forgetting(), Counting()
    after.load_state_dict(before.state_dict())
    with pytest.raises(AssertionError, match="seen"):
        compilescope.verify(before, after, [torch.randn(2, 4)])
    assert before.seen.item() == 0
    with pytest.raises(AssertionError, match="output"):
        compilescope.verify(before, other, [torch.randn(2, 4)])
    found = compilescope.verify(before, copy.deepcopy(before), [{"x": torch.randn(2, 4)}])
    assert found.breaks_after == 0


def test_what_is_compiled_already() -> None:
    compiled = torch.compile(masked, backend="eager")
    assert compilescope.verify(masked, compiled, _inputs).breaks_after == 0


@pytest.mark.parametrize("inputs", [[], list])
def test_nothing_to_call_with(inputs) -> None:
    with pytest.raises(ToolError, match="at least one"):
        compilescope.verify(masked, masked, inputs)
