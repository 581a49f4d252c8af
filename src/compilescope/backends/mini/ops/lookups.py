"""Elements chosen by an index tensor.

The compiler's `take` accepts no negative index, and gives an error for one that is out of range.
What torch counts from the end is moved to the front here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from compilescope.backends.mini.builder import GraphBuilder, MiniValue, Operand, Untranslatable
from compilescope.backends.mini.ops.reductions import dim_of

Handler = Callable[..., Any]
OPS: dict[str, Handler] = {}


def take(b: GraphBuilder, x: MiniValue, index: MiniValue, dim: int) -> MiniValue:
    if index.dtype != "i64":
        raise Untranslatable(f"an index of {index.dtype}")
    shape = (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :])
    return b.emit("take", [x, index], x.dtype, shape, dim=dim)


def _from_front(b: GraphBuilder, index: MiniValue, size: int) -> MiniValue:
    if index.dtype != "i64":
        raise Untranslatable(f"an index of {index.dtype}")
    negative = b.binary("lt", index, b.constant(0, "i64"), truth=True)
    moved = b.binary("add", index, b.constant(size, "i64"))
    return b.where(negative, moved, index)


def _embedding(
    b: GraphBuilder, weight: MiniValue, index: MiniValue, padding: int = -1, *_: bool, **__: Any
) -> MiniValue:
    return take(b, weight, index, 0)


def _index_select(b: GraphBuilder, x: MiniValue, dim: int, index: MiniValue) -> MiniValue:
    if not x.rank:
        raise Untranslatable("index_select of a tensor without dimensions")
    return take(b, x, b.reshape(index, (index.elements,)), dim_of(x, dim))


def _index(b: GraphBuilder, x: MiniValue, indices: Sequence[MiniValue | None]) -> MiniValue:
    used = [dim for dim, index in enumerate(indices) if index is not None]
    if not used:
        return x
    if used != list(range(used[0], used[-1] + 1)):
        raise Untranslatable("index tensors with a gap between them")
    if len(used) == 1:
        dim = used[0]
        return take(b, x, _from_front(b, _given(indices[dim]), x.shape[dim]), dim)
    return _index_many(b, x, [_given(indices[dim]) for dim in used], used[0])


def _given(index: MiniValue | None) -> MiniValue:
    assert index is not None
    return index


def _index_many(b: GraphBuilder, x: MiniValue, indices: list[MiniValue], first: int) -> MiniValue:
    """Neighbouring dimensions become one, which is indexed by places in it."""
    sizes = x.shape[first : first + len(indices)]
    place: MiniValue | None = None
    fits: MiniValue | None = None
    for index, size in zip(indices, sizes, strict=True):
        own = _from_front(b, index, size)
        inside = b.binary(
            "logical_and",
            b.binary("ge", own, b.constant(0, "i64"), truth=True),
            b.binary("lt", own, b.constant(size, "i64"), truth=True),
            truth=True,
        )
        fits = inside if fits is None else b.binary("logical_and", fits, inside, truth=True)
        if place is not None:
            own = b.binary("add", b.binary("mul", place, b.constant(size, "i64")), own)
        place = own
    assert place is not None and fits is not None
    # One that is out of range in its own dimension must not find another's element.
    place = b.where(fits, place, b.constant(-1, "i64"))
    after = x.shape[first + len(indices) :]
    flat = b.reshape(x, (*x.shape[:first], math.prod(sizes), *after))
    return take(b, flat, place, first)


def _gather(b: GraphBuilder, x: MiniValue, dim: int, index: MiniValue, **_: Any) -> MiniValue:
    if index.dtype != "i64":
        raise Untranslatable(f"an index of {index.dtype}")
    if not x.rank or not index.rank:
        raise Untranslatable("gather of a tensor without dimensions")
    return b.emit("gather", [x, index], x.dtype, index.shape, dim=dim_of(x, dim))


def _scatter(
    b: GraphBuilder, x: MiniValue, dim: int, index: MiniValue, source: Operand
) -> MiniValue:
    """One place in each row: chosen by comparing with every place."""
    dim = dim_of(x, dim)
    row = [size for d, size in enumerate(x.shape) if d != dim]
    if not x.rank or index.rank != x.rank or index.shape[dim] != 1:
        raise Untranslatable("scatter of more than one element a row")
    if [size for d, size in enumerate(index.shape) if d != dim] != row:
        raise Untranslatable("scatter to a part of the rows")
    if isinstance(source, MiniValue):
        if source.shape != index.shape or source.dtype != x.dtype:
            raise Untranslatable("scatter from a larger tensor, or of another dtype")
        value = source
    else:
        value = b.constant(source, x.dtype)
    shape = [1] * x.rank
    shape[dim] = x.shape[dim]
    places = b.reshape(b.iota(x.shape[dim]), shape)
    return b.where(b.binary("eq", places, index, truth=True), value, x)


OPS["aten.embedding.default"] = _embedding
OPS["aten.index_select.default"] = _index_select
OPS["aten.index.Tensor"] = OPS["aten._unsafe_index.Tensor"] = _index
OPS["aten.gather.default"] = _gather
OPS["aten.scatter.value"] = OPS["aten.scatter.src"] = _scatter
