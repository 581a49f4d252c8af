"""Searches a row of operations for those that go wrong, by asking about stretches of the row.

Pure: it knows nothing of graphs. `fails(low, high)` compiles the operations from `low` up to `high`
and says whether they go wrong; every answer costs a compilation, so none is asked for twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Fails = Callable[[int, int], bool]


class Found(NamedTuple):
    """The shortest stretch that goes wrong."""

    low: int
    high: int

    @property
    def alone(self) -> bool:
        return self.high - self.low == 1


def find_first(low: int, high: int, fails: Fails) -> Found:
    """`fails(low, high)` is known. Takes at most about 2 log2(high - low) answers.

    Both halves are asked about, so that each step rests on a stretch that was seen to fail; where
    neither half does, it takes operations of both.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if fails(low, middle):
            high = middle
        elif fails(middle, high):
            low = middle
        else:
            return _across(low, middle, high, fails)
    return Found(low, high)


def _across(low: int, middle: int, high: int, fails: Fails) -> Found:
    """What fails only with operations from both sides of the middle."""
    right, end = middle, high
    while end - right > 1:
        probe = (right + end) // 2
        if fails(low, probe):
            end = probe
        else:
            right = probe
    start, left = low, middle
    while left - start > 1:
        probe = (start + left) // 2
        if fails(probe, end):
            start = probe
        else:
            left = probe
    ends = (Found(end - 1, end), Found(start, start + 1)) if end - start > 2 else ()
    for single in ends:
        # An error that later operations hide is shown by the shorter stretch only.
        if fails(single.low, single.high):
            return single
    return Found(start, end)
