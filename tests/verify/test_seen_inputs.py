"""Differences that the program's own inputs do not show, each on the kind of inputs that does.
`benchmarks/judge.py` found that nothing showed them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

import compilescope  # noqa: E402


def _ones():
    return [(torch.ones(3),)]


def _kept(x):
    return x * 2


def _cut(x):
    return x.detach() * 2


def _written(x):
    x.mul_(2)
    return x.sum()


def _written_and_cut(x):
    x.mul_(2)
    return x.sum().detach()


def _above(x):
    return torch.where(x > 0, x, 0.0).sum()


def _not_below(x):
    return torch.where(x >= 0, x, 0.0).sum()


def _if_trained(x):
    return x + 1 if x.requires_grad else x * 3


def _always(x):
    return x + 1


def _sum_above(x):
    return x * 2 if (x * 2).sum() > 10 else x + 5


def _sum_not_below(x):
    return x * 2 if (x * 2).sum() >= 10 else x + 5


def _sum_above_another(x):
    return x * 2 if (x * 2).sum() > 9 else x + 5


def _peak_above(x):
    return x * 2 if x.max() > 4 else x + 5


def _peak_not_below(x):
    return x * 2 if x.max() >= 4 else x + 5


def _step_times(x):
    return x - 0.5 * x.sign() if x.abs().max() > 1 else x


def _step_by(x):
    return x - 0.5 / x.sign() if x.abs().max() > 1 else x


def _trained_ones():
    return [(torch.ones(3, requires_grad=True),)]


def _falling():
    return [(torch.tensor([-2.0, -1.0, 0.0]),)]


def _two():
    return [(torch.tensor([2.0, -3.0]),)]


@pytest.mark.parametrize(
    ("before", "after", "inputs", "words"),
    [
        (_kept, _cut, _ones, "inputs that require gradients"),
        (_written, _written_and_cut, _ones, "inputs that require gradients"),
        (_above, _not_below, _ones, "inputs that require gradients, zeros in half"),
        (_if_trained, _always, _trained_ones, "inputs that require no gradient"),
        (_sum_above, _sum_not_below, _two, "the border of a comparison"),
        (_sum_above, _sum_above_another, _two, "the border of a comparison"),
        (_peak_above, _peak_not_below, _falling, "moved to the border of a comparison"),
        (_step_times, _step_by, _two, "zeros in half of the values"),
    ],
)
def test_a_difference_is_seen(
    before: Callable[..., object], after: Callable[..., object], inputs: object, words: str
) -> None:
    with pytest.raises(AssertionError, match=words):
        compilescope.verify(before, after, inputs)
    assert words.partition(",")[0] in " ".join(compilescope.verify(before, before, inputs).inputs)


def test_the_last_digit_decides_nothing_at_a_border() -> None:
    def doubled(x):
        return x + 1 if (x * 0.3).sum() > 1.7 else x - 1

    def factored(x):
        return x + 1 if x.sum() * 0.3 > 1.7 else x - 1

    generator = torch.Generator().manual_seed(0)
    compilescope.verify(doubled, factored, [(torch.randn(100, generator=generator),)])


class _Counter(torch.nn.Module):
    def __init__(self, *, replaces: bool) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.replaces = replaces

    def forward(self, x):
        if self.replaces:
            self.calls = self.calls + 1
        else:
            self.calls += 1
        return x + self.calls


def test_a_buffer_that_is_replaced_is_not_written_into() -> None:
    before, after = (_Counter(replaces=replaces) for replaces in (False, True))
    after.replaces = True
    with pytest.raises(AssertionError, match="calls is new memory instead of the tensor that it"):
        compilescope.verify(before, after, _ones)


class _Recorder(torch.nn.Module):
    def __init__(self, step: int) -> None:
        super().__init__()
        self.recent: deque[int] = deque([0], maxlen=4)
        self.step = step

    def forward(self, x):
        self.recent.append(self.recent[-1] + self.step)
        return x * 2


def test_what_a_deque_holds_is_compared() -> None:
    with pytest.raises(AssertionError, match="recent"):
        compilescope.verify(_Recorder(1), _Recorder(2), _ones)


class _Normed(torch.nn.Module):
    def __init__(self, *, more: bool) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(2, affine=False)
        self.more = more

    def forward(self, x):
        rows = torch.cat([x, x[:1]]) if self.more else x
        return self.norm(rows)[: len(x)]


def test_another_mode_meets_other_values() -> None:
    """In training, one row more is in the mean; ones have the same one."""
    before, after = (_Normed(more=more).eval() for more in (False, True))
    with pytest.raises(AssertionError, match="the other way, other values"):
        compilescope.verify(before, after, [(torch.ones(4, 2),)])
