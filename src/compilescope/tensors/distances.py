"""How far apart two values are: bit for bit, by the largest difference, relative to their size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal bit by bit, but for the kinds of NaN. False where that is not known."""
    if one.is_nested != other.is_nested or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.is_nested:
        return _same_parts(one, other)  # It has no shape of its own.
    if one.shape != other.shape:
        return False
    if one.layout is not torch.strided:
        return _same_parts(one, other)
    one, other = one.detach(), other.detach()
    try:
        if torch.equal(one, other):
            return True
        if not (one.is_floating_point() or one.is_complex()):
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())
    except (NotImplementedError, RuntimeError):
        return False  # A kind of tensor without equality: it is compared with the other side.


def _same_parts(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Of nested and sparse tensors."""
    try:
        if one.is_nested:
            ours, theirs = list(one.unbind()), list(other.unbind())
        elif one.layout is torch.sparse_coo:
            ours, theirs = ([t.coalesce().indices(), t.coalesce().values()] for t in (one, other))
        else:
            ours, theirs = [one.to_dense()], [other.to_dense()]
    except (NotImplementedError, RuntimeError):
        return False
    same_count = len(ours) == len(theirs)
    return same_count and all(is_same(a, b) for a, b in zip(ours, theirs, strict=True))


def is_same_value(one: Any, other: Any, *, unclear: bool) -> bool:
    """Likewise for any two leaves; `unclear` where their class cannot be asked."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return is_same(one, other)
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return False
    try:
        return bool(one is other or one == other or (one != one and other != other))
    except (ValueError, TypeError, RuntimeError):
        return unclear


def relative_distance(one: Any, other: Any) -> float | None:
    """The norm of the difference by the norm of `one`, among numbers that are finite on both sides;
    None where there are none."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return None
    if not (is_dense(one) and is_dense(other)) or one.shape != other.shape:
        return None
    if not one.is_floating_point() or not one.numel():
        return None
    ours, theirs = one.to(torch.float64), other.to(torch.float64)
    finite = ours.isfinite() & theirs.isfinite()
    size = ours[finite].norm()
    apart = (ours - theirs)[finite].norm()
    return float(apart / size) if float(size) else None


def largest_distance(one: Any, other: Any) -> float:
    """The largest difference; infinite where there is no such number."""
    try:
        wide = list(_wide(one, other))
        if wide[0].shape != wide[1].shape:
            return float("inf")
        apart = (wide[0] - wide[1]).abs()
        apart = apart.masked_fill((wide[0] == wide[1]) | (wide[0].isnan() & wide[1].isnan()), 0)
        return float(apart.nan_to_num(float("inf")).max()) if apart.numel() else 0.0
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return 0.0 if is_same_value(one, other, unclear=True) else float("inf")


def _wide(*values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        tensor = torch.as_tensor(value)
        yield tensor.to(torch.complex128 if tensor.is_complex() else torch.float64).cpu()


def relative_error(reference: Any, test: Any) -> float | None:
    """The largest difference, relative to the largest number of the reference."""
    if not (isinstance(reference, torch.Tensor) and isinstance(test, torch.Tensor)):
        return None
    if not (is_dense(reference) and is_dense(test)) or reference.shape != test.shape:
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


def is_dense(value: torch.Tensor) -> bool:
    """Has it numbers, one in each place of its shape?"""
    return (
        value.layout is torch.strided
        and not value.is_nested
        and not value.is_quantized
        and value.device.type != "meta"
    )
