"""What rounding explains: pools of errors held against the reference's own and against floors.

docs/numbers.md says why the numbers here are what they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch

from compilescope.diff.config import summed_unit, unit_of
from compilescope.diff.evidence import Evidence, Pool

_NARROW = 1e-4
"""A dtype with a larger unit than this is computed in float32 inside most operations."""


class Floors(NamedTuple):
    """In units in the last place: errors that no one is blamed for."""

    largest: float
    mean: float
    near_zero: float
    """In units of the scale: near 0 a number is as wrong as the larger ones it was made of."""


_WIDE_FLOORS = Floors(8.0, 4.0, 1.0)
"""Functions such as exp and tanh are off by a few units in any library."""
_NARROW_FLOORS = Floors(2.0, 1.5, 1.5)
"""One rounding is half a unit; a function in several steps makes a few."""
_AS_LARGE, _AS_MEAN = 4.0, 2.0
"""Times the reference's own largest and mean error: as good as the reference."""
_SURELY_LARGE, _SURELY_MEAN = 4.0, 1.75
"""Times what is allowed: wrong."""
_AS_SLICE = 1.5
"""Times `_AS_MEAN`, for the worst of many slices."""


class PoolTest(NamedTuple):
    """One way to look at the errors."""

    words: str
    reference: float
    test: float
    allowed: float
    surely: float
    """Times `allowed`, from where on it is wrong."""

    @property
    def ratio(self) -> float:
        return self.test / self.allowed if self.allowed else math.inf if self.test else 0.0

    @property
    def evidence(self) -> float:
        """Above 1 it is wrong."""
        return self.ratio / self.surely


def pool_tests(found: Evidence, dtype: torch.dtype, reduction: int | None) -> Iterator[PoolTest]:
    floors = floors_of(dtype, reduction)
    for exponent, pool in found.by_size.items():
        floor = floors.largest * 2.0**exponent + floors.near_zero
        allowed = max(floor, _AS_LARGE * (1 + 3 / pool.count) * pool.reference_max)
        yield PoolTest("largest", pool.reference_max, pool.test_max, allowed, _SURELY_LARGE)
        if pool.count >= 64:
            yield _mean("mean", pool, 2.0**exponent, floors)
    yield _mean("mean", found.whole, found.whole.size, floors)
    for pool in found.slices:
        yield _mean("mean (of a slice)", pool, pool.size, floors, _AS_SLICE)


def _mean(words: str, pool: Pool, size: float, floors: Floors, more: float = 1.0) -> PoolTest:
    """Of few numbers the mean may be as large as the largest."""
    few = 1 / math.sqrt(pool.count or 1)
    floor = floors.mean + few * (floors.largest - floors.mean)
    luck = max(1.0, (1 + 8 * few) / _AS_MEAN)
    own = _AS_MEAN * more * luck * pool.reference_rms
    allowed = max(floor * size + floors.near_zero / 4, own)
    return PoolTest(words, pool.reference_rms, pool.test_rms, allowed, _SURELY_MEAN + 2.25 * few)


def floors_of(dtype: torch.dtype, reduction: int | None) -> Floors:
    """Each step of a sum is off by half a unit at most, at random: together by a fifth of the
    root of their number in the mean, by five times that at the largest."""
    unit = unit_of(dtype)
    base = _NARROW_FLOORS if unit > _NARROW else _WIDE_FLOORS
    steps = summed_unit(dtype) * math.sqrt(reduction or 1)
    grown = steps if reduction else 0.0
    return Floors(
        base.largest * unit + grown, base.mean * unit + grown / 4, base.near_zero * unit + steps
    )
