"""What counts as equal, by dtype and by how many numbers were summed; and how far apart two values
are: bit for bit, by the largest difference, relative to their size.

A tolerance that the user gave is a contract. A default one is only a guess at what rounding does,
and gives way to a float64 result wherever there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import torch

from compilescope.base.errors import ToolError


class Tolerance(NamedTuple):
    """Elements match where |test - reference| <= atol + rtol * |reference|."""

    atol: float
    rtol: float


_TOLERANCES = {
    torch.float64: Tolerance(1e-7, 1e-7),
    torch.float32: Tolerance(1e-5, 1.3e-6),
    torch.float16: Tolerance(1e-5, 1e-3),
    torch.bfloat16: Tolerance(1e-5, 1.6e-2),
}
"""Those of torch.testing.assert_close."""
_PARTS = {
    torch.complex128: torch.float64,
    torch.complex64: torch.float32,
    torch.complex32: torch.float16,
}
_EXACT = Tolerance(0.0, 0.0)


@dataclass(frozen=True)
class ComparisonConfig:
    """What counts as equal, and how much is kept of what is not."""

    atol: float | None = None
    """None: by dtype and reduction."""
    rtol: float | None = None
    max_mismatch_percentage: float = 0.0
    """So many percent of the elements may lie outside the tolerance."""
    per_dtype: Mapping[Any, Tolerance | tuple[float, float]] = field(default_factory=dict)
    """(atol, rtol) for one dtype, as `torch.float16` or "float16"; they go before atol and rtol."""
    reduction: int | None = None
    """How many numbers were summed into one, where that is known: rounding grows with it."""
    equal_nan: bool = True
    """NaN on both sides is no difference."""
    check_dtype: bool = True
    check_layout: bool = True
    check_device: bool = False
    worst: int = 5
    """How many of the worst elements are kept."""
    profile_bins: int = 1024
    """A dimension with more places than these is told in so many stretches."""
    threads: int | None = None
    """None: as many as torch uses."""
    fused: bool = True
    """Use the fused pass where a C compiler is found; False: always torch's own operations."""

    def __post_init__(self) -> None:
        for name in ("atol", "rtol", "max_mismatch_percentage"):
            value = getattr(self, name)
            if value is not None:
                _check_number(name, value)
        if self.max_mismatch_percentage > 100:
            raise ToolError("max_mismatch_percentage is greater than 100.")
        for name, least in (("worst", 0), ("profile_bins", 1), ("reduction", 1), ("threads", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or int(value) != value):
                raise ToolError(f"{name} is {value!r}; it must be a whole number.")
            if value is not None and value < least:
                raise ToolError(f"{name} is {value}; it must be {least} or more.")
        named = {_dtype(key): _pair(key, value) for key, value in self.per_dtype.items()}
        object.__setattr__(self, "per_dtype", named)

    def tolerance(self, dtype: torch.dtype, reduction: int | None = None) -> Tolerance:
        """What was asked for, else what the dtype and the reduction make likely."""
        given = self.per_dtype.get(dtype)
        if given is not None:
            return Tolerance(*given)
        usual = usual_tolerance(dtype, reduction or self.reduction)
        return Tolerance(
            usual.atol if self.atol is None else float(self.atol),
            usual.rtol if self.rtol is None else float(self.rtol),
        )

    def is_given(self, dtype: torch.dtype) -> bool:
        """Did the user say how near is near enough?"""
        return dtype in self.per_dtype or self.atol is not None or self.rtol is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        pairs = {str(k).removeprefix("torch."): list(v) for k, v in self.per_dtype.items()}
        return {**told, "per_dtype": pairs}


def real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of a complex number's parts; of others their own."""
    return _PARTS.get(dtype, dtype)


def unit_of(dtype: torch.dtype) -> float:
    """The distance from 1 to the next number; 0 for whole numbers."""
    real = real_dtype(dtype)
    return float(torch.finfo(real).eps) if real.is_floating_point else 0.0


def summed_unit(dtype: torch.dtype) -> float:
    """The same for the dtype in which sums are made: narrow floats are summed in float32."""
    return min(unit_of(dtype), float(torch.finfo(torch.float32).eps))


def usual_tolerance(dtype: torch.dtype, reduction: int | None = None) -> Tolerance:
    """Rounding errors of a sum of n numbers are those of a walk of n random steps."""
    real = real_dtype(dtype)
    if not real.is_floating_point:
        return _EXACT
    unit = unit_of(real)
    base = _TOLERANCES.get(real, Tolerance(unit / 4, 2 * unit))
    grown = summed_unit(real) * (math.sqrt(reduction) - 1) if reduction else 0.0
    return Tolerance(base.atol + grown, base.rtol + grown)


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ToolError(f"{name} is {value!r}; it must be a number of at least 0.")


def _dtype(key: Any) -> torch.dtype:
    found = getattr(torch, key.removeprefix("torch."), None) if isinstance(key, str) else key
    if not isinstance(found, torch.dtype):
        raise ToolError(
            f"{key!r} is not a torch dtype.", hint='Write torch.float16 or "float16", for example.'
        )
    return found


def _pair(key: Any, value: Any) -> Tolerance:
    try:
        atol, rtol = value
    except (TypeError, ValueError):
        raise ToolError(f"The tolerance for {key} is {value!r}: give (atol, rtol).") from None
    _check_number(f"atol for {key}", atol)
    _check_number(f"rtol for {key}", rtol)
    return Tolerance(float(atol), float(rtol))


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
    apart = torch.where(same, one.new_zeros(()), one - other).abs()
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
