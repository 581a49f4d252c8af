"""Compares an adapter's result with eager mode's: as numbers, as constants, as narrowed integers.

"Unknown" is a verdict of its own: what cannot be compared, or is too small to tell, never passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from compilescope.model.body import Verdict

_TOLERANCES = {
    torch.float64: 1e-7,
    torch.float32: 1e-4,
    torch.float16: 5e-3,
    torch.bfloat16: 2e-2,
    torch.complex128: 1e-7,
    torch.complex64: 1e-4,
}
"""Relative to the largest number. Chosen: in float32 and 16 bits looser than
torch.testing.assert_close (1.3e-6, 1e-3 and 1.6e-2), for a device's compiler adds up in an order of
its own; what is beyond is compared with float64."""
_LOOSEST = 0.15
"""For any other dtype. Chosen: a little more than a unit of float8_e4m3fn (0.125)."""
_NOISE = 8.0
"""Times the rounding error of 1: what is smaller may be the difference of two large numbers.
Chosen; it only makes the verdict "unknown"."""
_AS_GOOD = 4.0
"""Times eager mode's own error. Chosen, as `_AS_LARGE` in tensors/rounding.py."""
Exact = Callable[[], torch.Tensor | None]
"""Gives the same result, computed in float64; None where that cannot be done."""


class Opinion(NamedTuple):
    """A verdict and its reason."""

    verdict: Verdict
    reason: str


def compare_numbers(
    given: torch.Tensor,
    wanted: torch.Tensor,
    tolerance: float | None = None,
    exact: Exact | None = None,
) -> Opinion:
    """Relative to the largest number that is wanted, since small ones are differences of large.

    `exact` is asked where they are too far apart: whoever is as near to the truth as eager mode is
    right, where all is rounding error.
    """
    if not (is_plain(given) and is_plain(wanted)):
        return Opinion("unknown", "a sparse or nested tensor, not compared")
    if given.shape != wanted.shape or given.dtype != wanted.dtype:
        found, asked = f"{given.dtype} {list(given.shape)}", f"{wanted.dtype} {list(wanted.shape)}"
        return Opinion("fail", f"{found}; {asked} in eager mode")
    if not given.numel():
        return Opinion("pass", "empty")
    if not (given.is_floating_point() or given.is_complex()):
        return _compare_exactly(given, wanted)
    limit = _TOLERANCES.get(wanted.dtype, _LOOSEST) if tolerance is None else tolerance
    wide = torch.complex128 if given.is_complex() else torch.float64
    one, other = given.to(wide), wanted.to(wide)
    finite = torch.isfinite(one) & torch.isfinite(other)
    if not finite.any():
        return Opinion("unknown", "no number is finite on both sides")
    largest = float(other[finite].abs().max())
    off = float((one - other)[finite].abs().max())
    words = f"largest difference {off:.2g}, largest number {largest:.2g}"
    if off <= limit * max(largest, torch.finfo(torch.float32).tiny):
        return Opinion("pass", words)
    truth = exact() if exact is not None else None
    if truth is not None and truth.shape == wanted.shape:
        own = float((other - truth.to(wide))[finite].abs().nan_to_num(0).max())
        far = float((one - truth.to(wide))[finite].abs().nan_to_num(torch.inf).max())
        if far <= _AS_GOOD * own:
            return Opinion("pass", f"{words}; eager mode itself is off by {own:.2g}")
        words += f"; eager mode itself is off by {own:.2g}"
    if off <= _NOISE * torch.finfo(wanted.dtype).eps:
        return Opinion("unknown", f"{words}: too small to distinguish from rounding error")
    return Opinion("fail", words)


def _compare_exactly(given: torch.Tensor, wanted: torch.Tensor) -> Opinion:
    wrong = int((given != wanted).sum())
    if not wrong:
        return Opinion("pass", "equal")
    return Opinion("fail", f"{wrong} of {given.numel()} numbers differ")


def compare_finiteness(given: torch.Tensor, wanted: torch.Tensor) -> Opinion | None:
    """None for integers."""
    if not (given.is_floating_point() or given.is_complex()) or given.shape != wanted.shape:
        return None
    if not (is_plain(given) and is_plain(wanted)):
        return None
    lost = int((~torch.isfinite(widened(given)) & torch.isfinite(widened(wanted))).sum())
    if lost:
        return Opinion(
            "fail", f"{lost} of {given.numel()} are not finite, but are finite in eager mode"
        )
    return Opinion("pass", "finite wherever eager mode is")


def is_plain(value: torch.Tensor) -> bool:
    """Can its numbers be looked at one by one?"""
    return value.layout is torch.strided and not value.is_nested and not value.is_quantized


def widened(value: torch.Tensor) -> torch.Tensor:
    """In float64, where it is a number that is not whole."""
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64) if value.is_floating_point() else value


def spread(value: torch.Tensor) -> tuple[float, float] | None:
    """The least and the largest number; None for what has none."""
    if not is_plain(value) or not value.numel():
        return None
    if value.is_complex():
        value = value.abs()
    numbers = value.to(torch.float64)
    numbers = numbers[torch.isfinite(numbers)]
    return (float(numbers.min()), float(numbers.max())) if numbers.numel() else None


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Equal number by number; what is no number equals itself. What cannot be looked at is held
    to be the same: no difference was seen."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (is_plain(one) and is_plain(other)):
        return True
    one, other = widened(one), widened(other)
    return bool(((one == other) | ((one != one) & (other != other))).all())


def beyond(value: torch.Tensor, width: int) -> Opinion | None:
    """Are there integers that do not fit into so many bits? None for what is no wider integer."""
    if value.is_floating_point() or value.is_complex() or value.dtype is torch.bool:
        return None
    if not is_plain(value) or torch.iinfo(value.dtype).bits <= width:
        return None
    if not value.numel():
        return Opinion("pass", "empty")
    if value.dtype is torch.uint64:
        return Opinion("unknown", "torch cannot compute the minimum and maximum of uint64")
    signed = torch.iinfo(value.dtype).min < 0
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
    value = value.to(torch.int64)
    least, most = int(value.min()), int(value.max())
    if low <= least and most <= high:
        return Opinion("pass", f"all within {width} bits: {least} to {most}")
    return Opinion(
        "fail", f"{least} to {most} do not fit in {width} bits: they are silently truncated"
    )


def is_narrowed(given: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Are these the wanted integers, cut to 32 bits?"""
    if wanted.dtype is not torch.int64 or given.dtype is not torch.int64:
        return False
    if given.shape != wanted.shape:
        return False
    cut = wanted.to(torch.int32).to(torch.int64)
    return bool((given == cut).all()) and not bool((given == wanted).all())
