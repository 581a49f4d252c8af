"""Where in a tensor the errors lie, and how large they are: small enough to draw.

A tensor of any rank is seen as rows (all but its last dimension) and columns (the last); one of
rank 1 is read like a page, line after line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from compilescope.tensors.pairs import ChunkNumbers, Incomparable, as_tensor, pair_up, shape_of

_CHUNK = 1 << 14
"""As in `chunked_pass`: one thread of torch's."""
ENDLESS = 400
"""Where errors that are infinite are counted: beyond all that float64 holds."""


@dataclass(frozen=True)
class ErrorMap:
    """The largest absolute error in each cell of a grid, and a histogram of all errors."""

    rows: int
    columns: int
    cells: tuple[float, ...]
    """Row by row; infinite where one side only is finite."""
    row_size: int
    """Rows of the tensor; `rows` of the map share them evenly."""
    column_size: int
    histogram: tuple[tuple[int, int], ...]
    """(n, count): so many errors from 10**n up to 10**(n + 1)."""
    zeros: int
    """Elements without an error."""

    def lines(self) -> list[tuple[float, ...]]:
        width = self.columns
        return [self.cells[at * width : (at + 1) * width] for at in range(self.rows)]


def map_errors(reference: Any, test: Any, rows: int = 24, columns: int = 64) -> ErrorMap | None:
    """None where there is nothing to draw: no numbers, another shape, no element."""
    one, other = as_tensor(reference), as_tensor(test)
    if shape_of(one) != shape_of(other) or one.numel() == 0:
        return None
    try:
        pair = pair_up(one, other)
    except Incomparable:
        return None
    # Back to the order of the indices, which is the one that a reader knows.
    back = sorted(range(len(pair.order)), key=lambda at: pair.order[at])
    one, other = pair.reference.permute(back), pair.test.permute(back)
    width = _width(tuple(one.shape), columns)
    height = -(-one.numel() // width)
    grid = torch.zeros(min(height, rows), min(width, columns), dtype=torch.float64)
    counts: dict[int, int] = {}
    flat, twin = one.reshape(-1), other.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        end = start + _CHUNK
        part = ChunkNumbers.of(pair, flat[start:end], twin[start:end].to(flat.device))
        errors = part.errors.masked_fill(part.disagreeing(True), math.inf).cpu()
        place = torch.arange(start, start + errors.numel())
        row = torch.div(place, width, rounding_mode="floor") * grid.shape[0] // height
        cell = row * grid.shape[1] + place % width * grid.shape[1] // width
        grid.view(-1).scatter_reduce_(0, cell, errors, "amax")
        _count(counts, errors)
    zeros = one.numel() - sum(counts.values())
    cells = tuple(grid.flatten().tolist())
    lines, across = grid.shape
    return ErrorMap(lines, across, cells, height, width, _sorted(counts), zeros)


def _width(shape: tuple[int, ...], columns: int) -> int:
    if len(shape) >= 2:
        return max(shape[-1], 1)
    count = math.prod(shape)
    return count if count <= columns else max(columns, math.isqrt(count))


def _count(counts: dict[int, int], errors: torch.Tensor) -> None:
    told = errors[(errors > 0) & torch.isfinite(errors)].log10().floor().long()
    values, many = told.unique(return_counts=True)
    for value, count in zip(values.tolist(), many.tolist(), strict=True):
        counts[value] = counts.get(value, 0) + count
    endless = int(torch.isinf(errors).sum())
    if endless:
        counts[ENDLESS] = counts.get(ENDLESS, 0) + endless


def _sorted(counts: dict[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(counts.items()))
