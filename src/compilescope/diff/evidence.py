"""How far the reference and the test each are from the float64 result, pool by pool.

Errors are told in units of a local scale: the root mean square of the exact numbers in the slice
(row, column, channel ...) that has the smallest one. So large rows do not hide what is wrong in
small ones, and numbers near 0 that come from large ones are not asked to be exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from compilescope.diff.pairs import Pair, stretches

_STRETCH = 1 << 14
_LEAST_IN_SLICE = 16
"""A slice of fewer numbers says little of its scale."""
_MOST_SLICES = 1 << 16
LOWEST, HIGHEST = -40, 23
"""Binary exponents of |exact| / scale that get a pool of their own; what is 0 joins the lowest."""
_POOLS = HIGHEST - LOWEST + 1


@dataclass
class Pool:
    """Errors of both sides over the same elements."""

    count: int
    size: float
    """Root mean square of |exact| / scale."""
    reference_max: float
    test_max: float
    reference_rms: float
    test_rms: float


@dataclass
class Evidence:
    """All pools; and what is not finite."""

    whole: Pool
    by_size: dict[int, Pool]
    """By the binary exponent of |exact| / scale."""
    slices: list[Pool]
    """For each dimension the worst slice of either side, as one pool."""
    lost: int
    """Not finite in the test, though finite in the reference and exactly."""
    odd: int
    """Not finite in reference and test, in different ways, though finite exactly."""
    overflowed: int
    """Not finite in the reference only."""
    strange: int
    """Otherwise not what the reference or the exact result is."""


def gather(pair: Pair, exact: torch.Tensor) -> Evidence:
    """`exact` has the pair's shape and its order of dimensions."""
    scales = _scales(pair, exact)
    tally = _Pools(pair.shape, [dim for dim, _ in scales.by_dim], exact.device)
    for _, box in stretches(pair.shape, _STRETCH):
        tally.add(box, pair.reference[box], pair.test[box], exact[box], scales.of(box))
    return tally.evidence()


@dataclass
class _Scales:
    overall: float
    by_dim: list[tuple[int, torch.Tensor]]
    rank: int

    def of(self, box: Sequence[slice]) -> torch.Tensor | float:
        """For each element of a box, in a shape that broadcasts to it."""
        found: torch.Tensor | float = self.overall
        for dim, values in self.by_dim:
            shape = [1] * self.rank
            shape[dim] = -1
            here = values[box[dim]].view(shape)
            found = here if isinstance(found, float) else torch.minimum(found, here)
        return found


def _scales(pair: Pair, exact: torch.Tensor) -> _Scales:
    shape, count = pair.shape, exact.numel()
    dims = [
        dim
        for dim, size in enumerate(shape)
        if 1 < size <= _MOST_SLICES and count // size >= _LEAST_IN_SLICE
    ]
    sums = [torch.zeros(shape[dim], dtype=torch.float64, device=exact.device) for dim in dims]
    total = 0.0
    for _, box in stretches(shape, _STRETCH):
        square = exact[box].abs().to(torch.float64).square()
        square = torch.where(torch.isfinite(square), square, 0.0)
        total += float(square.sum())
        for dim, found in zip(dims, sums, strict=True):
            found[box[dim]] += square.sum([other for other in range(len(shape)) if other != dim])
    each = [(found * shape[dim] / count).sqrt() for dim, found in zip(dims, sums, strict=True)]
    # A slice of zeros has no scale of its own.
    overall = math.sqrt(total / count) or 1.0
    kept = [torch.where(values > 0, values, overall) for values in each]
    return _Scales(overall, list(zip(dims, kept, strict=True)), len(shape))


class _Pools:
    def __init__(self, shape: tuple[int, ...], dims: list[int], device: torch.device) -> None:
        zeros = torch.zeros(7, _POOLS, dtype=torch.float64, device=device)
        self._count, self._size, self._max_r, self._max_t, self._sum_r, self._sum_t, _ = zeros
        self._dims = dims
        self._rank = len(shape)
        self._slices = [
            torch.zeros(3, shape[dim], dtype=torch.float64, device=device) for dim in dims
        ]
        self._elements = math.prod(shape)
        self._odd = dict.fromkeys(("lost", "odd", "overflowed", "strange"), 0)

    def add(
        self,
        box: tuple[slice, ...],
        reference: torch.Tensor,
        test: torch.Tensor,
        exact: torch.Tensor,
        scale: torch.Tensor | float,
    ) -> None:
        wide = torch.complex128 if exact.is_complex() else torch.float64
        reference, test, exact = (t.to(exact.device, wide) for t in (reference, test, exact))
        fine = torch.isfinite(test) & torch.isfinite(exact)
        told = fine & torch.isfinite(reference)
        if not bool(told.all()):
            self._add_odd(reference, test, exact)
        error_r = torch.where(told, (reference - exact).abs() / scale, 0.0)
        error_t = torch.where(fine, (test - exact).abs() / scale, 0.0)
        size = torch.where(fine, exact.abs() / scale, 0.0)
        squares = [error_r.square(), error_t.square(), size.square()]
        for dim, found in zip(self._dims, self._slices, strict=True):
            others = [other for other in range(self._rank) if other != dim]
            for number, square in enumerate(squares):
                found[number, box[dim]] += square.sum(others)
        at = torch.frexp(size).exponent.long()
        at = torch.where(size > 0, at, LOWEST).clamp(LOWEST, HIGHEST).sub(LOWEST)
        at, fine = at.flatten()[fine.flatten()], fine.flatten()
        for sums, values in zip((self._sum_r, self._sum_t, self._size), squares, strict=True):
            sums.index_add_(0, at, values.flatten()[fine])
        self._count.index_add_(0, at, torch.ones_like(at, dtype=torch.float64))
        self._max_r.scatter_reduce_(0, at, error_r.flatten()[fine], "amax")
        self._max_t.scatter_reduce_(0, at, error_t.flatten()[fine], "amax")

    def _add_odd(self, reference: torch.Tensor, test: torch.Tensor, exact: torch.Tensor) -> None:
        kinds = [_kind(side) for side in (reference, test, exact)]
        r, t, x = kinds
        self._odd["lost"] += int(((t != 0) & (r == 0) & (x == 0)).sum())
        self._odd["overflowed"] += int(((t == 0) & (r != 0) & (x == 0)).sum())
        self._odd["odd"] += int(((t != 0) & (r != 0) & (t != r) & (x == 0)).sum())
        self._odd["strange"] += int(((x != 0) & (t != r) & (t != x)).sum())

    def evidence(self) -> Evidence:
        columns = (self._count, self._size, self._max_r, self._max_t, self._sum_r, self._sum_t)
        rows = torch.stack(columns, 1).tolist()
        by_size = {at + LOWEST: row for at, row in enumerate(rows) if row[0]}
        return Evidence(
            whole=_pool(_joined(list(by_size.values()))),
            by_size={at: _pool(row) for at, row in _filled(by_size).items()},
            slices=[_worst_slice(found, self._elements) for found in self._slices],
            **self._odd,
        )


def _kind(values: torch.Tensor) -> torch.Tensor:
    """0 for a finite number, 1 and 2 for infinities, 3 for NaN."""
    if values.is_complex():
        return torch.where(torch.isnan(values), 3, torch.isinf(values).long())
    inf = torch.isposinf(values).long() + 2 * torch.isneginf(values).long()
    return torch.where(torch.isnan(values), 3, inf)


def _joined(rows: list[list[float]]) -> list[float]:
    if not rows:
        return [0.0] * 6
    count, size, reference_max, test_max, *squares = zip(*rows, strict=True)
    sums = [sum(column) for column in squares]
    return [sum(count), sum(size), max(reference_max), max(test_max), *sums]


_ENOUGH = 64


def _filled(rows: dict[int, list[float]]) -> dict[int, list[float]]:
    """A pool of few elements borrows the reference's errors of the next larger numbers (then of
    the next smaller): a handful may have been lucky."""
    found = {}
    order = sorted(rows)
    for place, at in enumerate(order):
        lenders = [*order[place:], *reversed(order[:place])]
        count, largest, square = 0.0, 0.0, 0.0
        for lender in lenders:
            count += rows[lender][0]
            largest = max(largest, rows[lender][2])
            square += rows[lender][4]
            if count >= _ENOUGH:
                break
        own = rows[at]
        found[at] = [own[0], own[1], largest, own[3], square * own[0] / count, own[5]]
    return found


def _pool(row: list[float]) -> Pool:
    count = row[0] or 1.0
    size, reference, test = (math.sqrt(row[at] / count) for at in (1, 4, 5))
    return Pool(int(row[0]), size, row[2], row[3], reference, test)


def _worst_slice(found: torch.Tensor, elements: int) -> Pool:
    each = elements // found.shape[1]
    reference, test, size = (found / each).sqrt()
    at = int(test.argmax())
    worst_r, worst_t = float(reference.max()), float(test[at])
    return Pool(each, float(size[at]), worst_r, worst_t, worst_r, worst_t)
