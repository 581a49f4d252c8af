"""The search itself, on rows of numbers: no torch."""

from __future__ import annotations

import math
import random

import pytest

pytest.importorskip("torch")

from compilescope.measure.diff.localize.search import WrongSpan, find_first

pytestmark = pytest.mark.torch


class Row:
    """Fails where a stretch holds all of one of the groups."""

    def __init__(self, size: int, *groups: set[int]) -> None:
        self.size, self.groups = size, groups
        self.asked: set[tuple[int, int]] = {(0, size)}

    def fails(self, low: int, high: int) -> bool:
        self.asked.add((low, high))
        return any(all(low <= n < high for n in group) for group in self.groups)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 100, 2000])
def test_finds_the_one(size: int) -> None:
    for guilty in {0, size - 1, size // 2, size // 3}:
        row = Row(size, {guilty})
        assert find_first(0, size, row.fails) == WrongSpan(guilty, guilty + 1)
        assert len(row.asked) <= 2 * math.ceil(math.log2(size)) + 1


def test_finds_the_first_of_several() -> None:
    row = Row(100, {70}, {12}, {40})
    assert find_first(0, 100, row.fails) == WrongSpan(12, 13)


@pytest.mark.parametrize("pair", [(3, 4), (49, 50), (0, 99), (20, 71), (98, 99)])
def test_finds_what_fails_only_together(pair: tuple[int, int]) -> None:
    row = Row(100, set(pair))
    found = find_first(0, 100, row.fails)
    assert found == WrongSpan(pair[0], pair[1] + 1)
    assert len(row.asked) <= 2 * math.log2(100) + 6


def test_random_rows() -> None:
    chance = random.Random(5)
    for _ in range(300):
        size = chance.randint(1, 300)
        group = set(chance.sample(range(size), min(size, chance.randint(1, 3))))
        row = Row(size, group)
        found = find_first(0, size, row.fails)
        assert found == WrongSpan(min(group), max(group) + 1)
        assert len(row.asked) <= 2 * math.log2(max(size, 2)) + 6
