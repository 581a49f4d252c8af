"""Two tensors laid side by side, so that their numbers can be walked through together.

Whatever their strides, layout, dtype or device were: a pair has one shape, and its stretches are
flat. What cannot be laid out says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

Kind = Literal["float", "complex", "int"]


class Incomparable(Exception):
    """These have no numbers that could be held against each other."""


@dataclass(frozen=True)
class Pair:
    """Two strided tensors of one shape, their dimensions in the order of memory."""

    reference: torch.Tensor
    test: torch.Tensor
    order: tuple[int, ...]
    """Which dimension of the originals each dimension is."""
    kind: Kind
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

    def stretch(self, box: tuple[slice, ...]) -> tuple[torch.Tensor, torch.Tensor]:
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
        return torch.tensor(value, dtype=torch.float64)
    if isinstance(value, complex):
        return torch.tensor(value, dtype=torch.complex128)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return torch.tensor(float(value), dtype=torch.float64)
    return torch.as_tensor(value)


def unravel(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The index of a place in the walk."""
    found = []
    for size in reversed(shape):
        place, at = divmod(place, size)
        found.append(at)
    return tuple(reversed(found))


def pair_up(reference: torch.Tensor, test: torch.Tensor) -> Pair:
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
    return Pair(reference.permute(order), test.permute(order), order, _kind(dtype), dtype, places)


def stretches(shape: tuple[int, ...], most: int) -> Iterator[tuple[int, tuple[slice, ...]]]:
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


def _kind(dtype: torch.dtype) -> Kind:
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
        return torch.empty(0), torch.empty(0)
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
