"""A stretch of two tensors as numbers wide enough to subtract: float64, complex128 or int64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from compilescope.diff.config import real_dtype
from compilescope.diff.pairs import Pair

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LOWEST = -(2**63)


@dataclass(frozen=True)
class Numbers:
    """Flat tensors of one length."""

    reference: torch.Tensor
    test: torch.Tensor
    errors: torch.Tensor
    """Absolute, in float64; 0 where not both are finite."""
    magnitude: torch.Tensor
    """Of the reference, in float64; 0 where not both are finite."""
    finite: torch.Tensor
    unequal: torch.Tensor
    distance: torch.Tensor | None = None
    """In units in the last place, in float64; None where the dtype has no such unit."""

    @classmethod
    def of(cls, pair: Pair, reference: torch.Tensor, test: torch.Tensor) -> Numbers:
        if pair.kind == "int":
            return cls._whole(reference, test)
        wide = torch.complex128 if pair.kind == "complex" else torch.float64
        one, other = reference.to(wide), test.to(wide)
        finite = torch.isfinite(one) & torch.isfinite(other)
        errors = torch.where(finite, (one - other).abs(), 0.0)
        distance = None
        if reference.dtype == test.dtype:
            distance = torch.where(finite, _distance(reference, test), 0.0)
        magnitude = torch.where(finite, one.abs(), 0.0)
        return cls(one, other, errors, magnitude, finite, one != other, distance)

    @classmethod
    def _whole(cls, reference: torch.Tensor, test: torch.Tensor) -> Numbers:
        """Exact: what float64 cannot hold is subtracted as whole numbers first."""
        one, other = _signed(reference), _signed(test)
        if (reference.dtype is torch.uint64) != (test.dtype is torch.uint64):
            # Beside signed numbers the shift of an unsigned one would not cancel out.
            wide_one, wide_other = _as_float(reference), _as_float(test)
            errors, unequal = (wide_one - wide_other).abs(), wide_one != wide_other
        else:
            wide_one, wide_other = _as_float(reference), _as_float(test)
            steps = one - other
            wrapped = (one >= other) != (steps >= 0)
            errors = torch.where(wrapped, (wide_one - wide_other).abs(), steps.double().abs())
            unequal = one != other
        finite = torch.ones_like(unequal)
        return cls(wide_one, wide_other, errors, wide_one.abs(), finite, unequal)

    def disagreeing(self, equal_nan: bool) -> torch.Tensor:
        """Not finite on one side or both, and not the same."""
        one, other = self.reference, self.test
        alike = (one != one) & (other != other) & equal_nan | self._same_inf()
        return ~(self.finite | alike)

    def products(self, scale: float = 1.0) -> dict[str, Any]:
        sides = self.reference * scale, self.test * scale
        one, other = (torch.where(self.finite, side, 0) for side in sides)
        if one.is_complex():
            one, other = torch.view_as_real(one).flatten(), torch.view_as_real(other).flatten()
        return {
            "dot": float((one * other).sum()),
            "square_reference": float((one * one).sum()),
            "square_test": float((other * other).sum()),
        }

    def ulps(self) -> dict[str, Any]:
        if self.distance is None:
            return {}
        return {"sum_ulp": float(self.distance.sum()), "max_ulp": float(self.distance.max())}

    def odd_ones(self) -> dict[str, Any]:
        """Counts of what is not finite."""
        if bool(self.finite.all()):
            return {}
        one, other = self.reference, self.test
        nan_one, nan_other = one != one, other != other
        return {
            "nan_reference": int(nan_one.sum()),
            "nan_test": int(nan_other.sum()),
            "nan_both": int((nan_one & nan_other).sum()),
            "inf_reference": int((torch.isinf(one) & ~nan_one).sum()),
            "inf_test": int((torch.isinf(other) & ~nan_other).sum()),
            "inf_both": int(self._same_inf().sum()),
        }

    def _same_inf(self) -> torch.Tensor:
        return torch.isinf(self.reference) & (self.reference == self.test)


def _signed(values: torch.Tensor) -> torch.Tensor:
    """As int64, in the same order and at the same distances."""
    if values.dtype is torch.uint64:
        return values.view(torch.int64) ^ _LOWEST
    return values.to(torch.int64)


def _as_float(values: torch.Tensor) -> torch.Tensor:
    if values.dtype is torch.uint64:
        return _signed(values).double() + 2.0**63
    return values.double()


def _distance(reference: torch.Tensor, test: torch.Tensor) -> torch.Tensor:
    """How many numbers of the dtype lie between; of a complex number its worse part."""
    if reference.is_complex():
        parts = (torch.view_as_real(side).flatten() for side in (reference, test))
        return _distance(*parts).view(-1, 2).amax(1)
    kind = _BITS[reference.element_size()]
    one, other = (_ordered(side.contiguous().view(kind)) for side in (reference, test))
    steps = one - other
    if kind is not torch.int64:
        return steps.abs().double()
    wrapped = (one >= other) != (steps >= 0)
    return torch.where(wrapped, (one.double() - other.double()).abs(), steps.double().abs())


def _ordered(bits: torch.Tensor) -> torch.Tensor:
    """The bits of floats as whole numbers in the order of the floats; both zeros are 0."""
    lowest = torch.iinfo(bits.dtype).min
    wide = bits.to(torch.int64)
    return torch.where(wide < 0, lowest - wide, wide)


def has_ulps(dtype: torch.dtype) -> bool:
    """Is there a unit in the last place?"""
    return bool(real_dtype(dtype).is_floating_point)
