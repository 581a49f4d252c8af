"""Two tensors side by side, as numbers of one shape that can be subtracted chunk by chunk.

Whatever their strides, layout, dtype or device were: a pair has one shape, and its chunks are flat.
What cannot be laid out so says why (`Incomparable`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from compilescope.measure.tensors.tolerances import real_dtype

NumberKind = Literal["float", "complex", "int"]


class Incomparable(Exception):
    """These have no numbers that could be held against each other."""


@dataclass(frozen=True)
class TensorPair:
    """Two strided tensors of one shape, their dimensions in the order of memory."""

    reference: torch.Tensor
    test: torch.Tensor
    order: tuple[int, ...]
    """Which dimension of the originals each dimension is."""
    kind: NumberKind
    dtype: torch.dtype
    """The one both have, else the one that both fit into."""
    places: torch.Tensor | None = None
    """For sparse tensors: the index of each number in the whole."""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.reference.shape)

    @property
    def is_flat(self) -> bool:
        """Do both lie in memory in the order of their elements?"""
        return bool(self.reference.is_contiguous() and self.test.is_contiguous())

    def chunk(self, box: tuple[slice, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        """A part of both, flat, on the reference's device."""
        one, other = self.reference[box].reshape(-1), self.test[box].reshape(-1)
        return one, other.to(one.device)

    def index_of(self, place: int) -> tuple[int, ...]:
        """From the place in the walk to the index in the originals."""
        if self.places is not None:
            return tuple(self.places[:, place].tolist())
        here = dict(zip(self.order, unravel(place, self.shape), strict=True))
        return tuple(here[dim] for dim in sorted(here))


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """A nested tensor has only its number of parts."""
    return (tensor.size(0),) if tensor.is_nested else tuple(tensor.shape)


def as_tensor(value: Any) -> torch.Tensor:
    """Numbers keep all their bits."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, float):
        return torch.tensor(value, dtype=torch.float64, device="cpu")
    if isinstance(value, complex):
        return torch.tensor(value, dtype=torch.complex128, device="cpu")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return torch.tensor(float(value), dtype=torch.float64, device="cpu")
    return torch.as_tensor(value, device="cpu")


def unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of a place in the walk."""
    found = []
    for size in reversed(shape):
        place, at = divmod(place, size)
        found.append(at)
    return tuple(reversed(found))


def pair_up(reference: torch.Tensor, test: torch.Tensor) -> TensorPair:
    """Of one shape; raises Incomparable."""
    if reference.is_meta or test.is_meta:
        raise Incomparable("a meta tensor has no numbers")
    reference, test = reference.detach(), test.detach()
    places = None
    if reference.is_nested or test.is_nested:
        reference, test = _from_nested(reference, test)
    if torch.strided not in (reference.layout, test.layout):
        reference, test, places = _from_sparse(reference, test)
    reference, test = _strided(reference), _strided(test)
    dtype = _common_dtype(reference, test)
    order = _memory_order(reference)
    return TensorPair(
        reference.permute(order), test.permute(order), order, _kind(dtype), dtype, places
    )


def chunks(shape: tuple[int, ...], most: int) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """Cuts a shape into boxes that lie whole in the walk: where each begins, and its slices."""
    inner, cut = 1, len(shape)
    while cut and inner * shape[cut - 1] <= most:
        cut -= 1
        inner *= shape[cut]
    if cut == 0:
        yield 0, tuple(slice(0, size) for size in shape)
        return
    rest = tuple(slice(0, size) for size in shape[cut:])
    size = shape[cut - 1]
    step = max(most // inner, 1)
    for number in range(math.prod(shape[: cut - 1])):
        outer, left = [], number
        for length in reversed(shape[: cut - 1]):
            left, at = divmod(left, length)
            outer.append(slice(at, at + 1))
        for begin in range(0, size, step):
            place = (number * size + begin) * inner
            box = (*reversed(outer), slice(begin, min(begin + step, size)), *rest)
            yield place, box


def _kind(dtype: torch.dtype) -> NumberKind:
    if dtype.is_complex:
        return "complex"
    return "float" if dtype.is_floating_point else "int"


def _common_dtype(reference: torch.Tensor, test: torch.Tensor) -> torch.dtype:
    if reference.dtype == test.dtype:
        return reference.dtype
    try:
        return torch.promote_types(reference.dtype, test.dtype)
    except RuntimeError:
        # torch 2.13 promotes neither its 8-bit floats nor its wider unsigned integers.
        if reference.dtype.is_floating_point or test.dtype.is_floating_point:
            return torch.float64
        raise Incomparable(f"{reference.dtype} and {test.dtype} have no common type") from None


def _memory_order(tensor: torch.Tensor) -> tuple[int, ...]:
    strides = tensor.stride()
    if 0 in strides:
        return tuple(range(tensor.dim()))
    return tuple(sorted(range(tensor.dim()), key=lambda dim: (-strides[dim], dim)))


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        try:
            tensor = tensor.to_dense()
        except (RuntimeError, NotImplementedError) as error:
            raise Incomparable(f"its layout {tensor.layout} cannot be converted: {error}") from None
    return tensor.resolve_conj().resolve_neg()


def _from_nested(one: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    if not (one.is_nested and other.is_nested):
        raise Incomparable("only one of them is a nested tensor")
    ours, theirs = one.unbind(), other.unbind()
    if [tuple(part.shape) for part in ours] != [tuple(part.shape) for part in theirs]:
        raise Incomparable("their nested parts have different shapes")
    if not ours:
        return torch.empty(0, device="cpu"), torch.empty(0, device="cpu")
    return torch.cat([p.reshape(-1) for p in ours]), torch.cat([p.reshape(-1) for p in theirs])


def _from_sparse(
    one: torch.Tensor, other: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The numbers at all places that either side names: a missing one is 0."""
    try:
        ours, theirs = (
            (t if t.layout is torch.sparse_coo else t.to_sparse()).coalesce() for t in (one, other)
        )
    except (RuntimeError, NotImplementedError) as error:
        raise Incomparable(f"its layout {one.layout} cannot be converted: {error}") from None
    if ours.dense_dim() or theirs.dense_dim():
        return one, other, None
    theirs = theirs.to(ours.device)
    if torch.equal(ours.indices(), theirs.indices()):
        return ours.values(), theirs.values(), ours.indices()
    places = torch.cat([ours.indices(), theirs.indices()], 1)
    both = []
    for mine, before, after in (
        (ours, 0, theirs.indices().shape[1]),
        (theirs, ours.indices().shape[1], 0),
    ):
        values = mine.values()
        filled = torch.cat([values.new_zeros(before), values, values.new_zeros(after)])
        both.append(torch.sparse_coo_tensor(places, filled, mine.shape).coalesce())
    return both[0].values(), both[1].values(), both[0].indices()


_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_LOWEST = -(2**63)
"""The sign bit of an int64: turned over, it puts unsigned numbers into the order of signed ones."""


@dataclass(frozen=True)
class ChunkNumbers:
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
    def of(cls, pair: TensorPair, reference: torch.Tensor, test: torch.Tensor) -> ChunkNumbers:
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
    def _whole(cls, reference: torch.Tensor, test: torch.Tensor) -> ChunkNumbers:
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
