"""Figures about tensors, for reports: ranges of values, and how far apart two are."""

from __future__ import annotations

import math
from typing import Any

import torch

from compilescope.diff.localize.records import ValueRange


def range_of(name: str, value: Any) -> ValueRange | None:
    """None for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    if not _is_plain(value) or not value.numel():
        return ValueRange(name, dtype, shape)
    numbers = value.detach().abs() if value.is_complex() else value.detach()
    nans = infinities = 0
    if numbers.is_floating_point():
        nans, infinities = int(numbers.isnan().sum()), int(numbers.isinf().sum())
        if nans or infinities:
            numbers = numbers[numbers.isfinite()]
    if not numbers.numel():
        return ValueRange(name, dtype, shape, None, None, nans, infinities)
    wide = numbers.to(torch.float64) if numbers.is_floating_point() else numbers.to(torch.int64)
    return ValueRange(name, dtype, shape, float(wide.min()), float(wide.max()), nans, infinities)


def difference(reference: Any, test: Any) -> float | None:
    """The largest difference, relative to the largest number of the reference."""
    if not (isinstance(reference, torch.Tensor) and isinstance(test, torch.Tensor)):
        return None
    if reference.shape != test.shape or not (_is_plain(reference) and _is_plain(test)):
        return None
    if not reference.numel():
        return 0.0
    wide = torch.complex128 if reference.is_complex() or test.is_complex() else torch.float64
    one, other = reference.detach().to(wide), test.detach().to(wide)
    same = (one == other) | (one.isnan() & other.isnan())
    apart = torch.where(same, torch.zeros((), dtype=wide), one - other).abs()
    if not bool(apart.isfinite().all()):
        return math.inf
    largest = float(one.abs().nan_to_num(0.0, 0.0, 0.0).max())
    return float(apart.max()) / (largest or 1.0)


def _is_plain(value: torch.Tensor) -> bool:
    return (
        value.layout is torch.strided
        and not value.is_nested
        and not value.is_quantized
        and value.device.type != "meta"
    )
