"""Operators that move numbers without computing: reshapes, slices, concatenation."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from compilescope.backends.mini.builder import GraphBuilder, MiniValue, Operand, Untranslatable
from compilescope.backends.mini.ops.pointwise import OPS as POINTWISE
from compilescope.backends.mini.ops.reductions import dim_of

Handler = Callable[..., Any]
OPS: dict[str, Handler] = {}


def _reshape(b: GraphBuilder, x: MiniValue, shape: Sequence[int]) -> MiniValue:
    sizes = list(shape)
    if -1 in sizes:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = x.elements // known if known else 0
    if math.prod(sizes) != x.elements:
        raise Untranslatable(f"a view of {list(x.shape)} as {sizes}")
    return b.reshape(x, sizes)


for _name in ("view", "_unsafe_view", "reshape", "view_copy", "_reshape_copy", "_reshape_alias"):
    OPS[f"aten.{_name}.default"] = _reshape
OPS["prims.reshape.default"] = _reshape
del OPS["aten._reshape_alias.default"]  # It has strides of its own.


def _permute(b: GraphBuilder, x: MiniValue, dims: Sequence[int]) -> MiniValue:
    return b.permute(x, [dim_of(x, dim) for dim in dims])


def _transpose(b: GraphBuilder, x: MiniValue, one: int, other: int) -> MiniValue:
    dims = list(range(x.rank))
    if x.rank:
        one, other = dim_of(x, one), dim_of(x, other)
        dims[one], dims[other] = dims[other], dims[one]
    return b.permute(x, dims)


def _t(b: GraphBuilder, x: MiniValue) -> MiniValue:
    return b.permute(x, list(reversed(range(x.rank))))


OPS["aten.permute.default"] = OPS["prims.transpose.default"] = _permute
OPS["aten.transpose.int"] = _transpose
OPS["aten.t.default"] = _t


def _expand(
    b: GraphBuilder, x: MiniValue, shape: Sequence[int], *, implicit: bool = False
) -> MiniValue:
    added = len(shape) - x.rank
    sizes = [x.shape[dim - added] if size == -1 else size for dim, size in enumerate(shape)]
    return b.expand(x, sizes)


def _broadcast_in_dim(
    b: GraphBuilder, x: MiniValue, shape: Sequence[int], dims: Sequence[int]
) -> MiniValue:
    placed = [1] * len(shape)
    for own, dim in enumerate(dims):
        placed[dim] = x.shape[own]
    return b.expand(b.reshape(x, placed), shape)


OPS["aten.expand.default"] = _expand
OPS["prims.broadcast_in_dim.default"] = _broadcast_in_dim


def _unsqueeze(b: GraphBuilder, x: MiniValue, dim: int) -> MiniValue:
    shape = list(x.shape)
    shape.insert(dim % (x.rank + 1), 1)
    return b.reshape(x, shape)


def _squeeze(b: GraphBuilder, x: MiniValue, dims: Sequence[int] | int | None = None) -> MiniValue:
    if dims is None:
        named = set(range(x.rank))
    else:
        named = {dim_of(x, dim) for dim in ([dims] if isinstance(dims, int) else dims)}
    kept = [size for dim, size in enumerate(x.shape) if size != 1 or dim not in named]
    return b.reshape(x, kept)


OPS["aten.unsqueeze.default"] = _unsqueeze
OPS["aten.squeeze.default"] = OPS["aten.squeeze.dim"] = OPS["aten.squeeze.dims"] = _squeeze


def bounds(size: int, start: int | None, end: int | None) -> tuple[int, int]:
    """As Python's slices: negative numbers count from the end, and all is cut to what there is."""
    first, last, _ = slice(start, end).indices(size)
    return first, max(first, last)


def _slice(
    b: GraphBuilder,
    x: MiniValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> MiniValue:
    dim = dim_of(x, dim)
    return b.slice(x, dim, *bounds(x.shape[dim], start, end), step)


def _select(b: GraphBuilder, x: MiniValue, dim: int, index: int) -> MiniValue:
    dim = dim_of(x, dim)
    size = x.shape[dim]
    if not -size <= index < size:
        raise Untranslatable(f"index {index} of {size}")
    part = b.slice(x, dim, index % size, index % size + 1)
    return b.reshape(part, [s for d, s in enumerate(x.shape) if d != dim])


OPS["aten.slice.Tensor"] = _slice
OPS["aten.select.int"] = _select


def _split(b: GraphBuilder, x: MiniValue, size: int, dim: int = 0) -> tuple[MiniValue, ...]:
    dim = dim_of(x, dim)
    whole = x.shape[dim]
    if not size:
        return (x,)
    starts = range(0, max(whole, 1), size)
    return tuple(b.slice(x, dim, at, min(at + size, whole)) for at in starts)


def _split_sizes(
    b: GraphBuilder, x: MiniValue, sizes: Sequence[int], dim: int = 0
) -> tuple[MiniValue, ...]:
    dim, at, parts = dim_of(x, dim), 0, []
    for size in sizes:
        parts.append(b.slice(x, dim, at, at + size))
        at += size
    return tuple(parts)


def _unbind(b: GraphBuilder, x: MiniValue, dim: int = 0) -> tuple[MiniValue, ...]:
    dim = dim_of(x, dim)
    return tuple(_select(b, x, dim, index) for index in range(x.shape[dim]))


for _name in ("split", "unsafe_split"):
    OPS[f"aten.{_name}.Tensor"] = _split
    OPS[f"aten.{_name}_with_sizes.default"] = _split_sizes
OPS["aten.unbind.int"] = _unbind


def _cat(b: GraphBuilder, values: Sequence[MiniValue], dim: int = 0) -> MiniValue:
    values = b.promote(*values)
    # An empty tensor of one dimension goes with anything, for the sake of old programs.
    kept = [value for value in values if value.shape != (0,)] or values[:1]
    dim = dim_of(kept[0], dim)
    full = [value for value in kept if value.shape[dim]]
    return b.cat(full or kept[:1], dim)


def _stack(b: GraphBuilder, values: Sequence[MiniValue], dim: int = 0) -> MiniValue:
    return _cat(b, [_unsqueeze(b, value, dim) for value in values], dim % (values[0].rank + 1))


OPS["aten.cat.default"] = _cat
OPS["aten.stack.default"] = _stack


def _pad(b: GraphBuilder, x: MiniValue, pad: Sequence[int], value: Operand = 0) -> MiniValue:
    """`pad` begins with the last dimension: before, after. A negative one cuts off."""
    for number in range(len(pad) // 2):
        dim = x.rank - 1 - number
        before, after = pad[2 * number], pad[2 * number + 1]
        size = x.shape[dim]
        x = b.slice(x, dim, max(0, -before), max(max(0, -before), size - max(0, -after)))
        parts = []
        for count in (before, after):
            shape = list(x.shape)
            shape[dim] = count
            parts.append(b.constant(_plain(value), x.dtype, shape) if count > 0 else None)
        x = b.cat([part for part in (parts[0], x, parts[1]) if part is not None], dim)
    return x


def _plain(value: Operand) -> bool | int | float:
    if isinstance(value, MiniValue):
        raise Untranslatable("a tensor in place of a number")
    return value


OPS["aten.constant_pad_nd.default"] = _pad


def _slice_scatter(
    b: GraphBuilder,
    x: MiniValue,
    source: MiniValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> MiniValue:
    if step != 1:
        raise Untranslatable("slice_scatter with steps")
    dim = dim_of(x, dim)
    first, last = bounds(x.shape[dim], start, end)
    parts = [
        b.slice(x, dim, 0, first),
        b.cast(source, x.dtype),
        b.slice(x, dim, last, x.shape[dim]),
    ]
    return b.cat([part for part in parts if part.shape[dim]] or [x], dim)


def _select_scatter(
    b: GraphBuilder, x: MiniValue, source: MiniValue, dim: int, index: int
) -> MiniValue:
    dim = dim_of(x, dim)
    index = index % x.shape[dim]
    return _slice_scatter(b, x, _unsqueeze(b, source, dim), dim, index, index + 1)


OPS["aten.slice_scatter.default"] = _slice_scatter
OPS["aten.select_scatter.default"] = _select_scatter


def _repeat(b: GraphBuilder, x: MiniValue, repeats: Sequence[int]) -> MiniValue:
    x = b.reshape(x, (1,) * (len(repeats) - x.rank) + x.shape)
    paired = [size for pair in zip([1] * x.rank, x.shape, strict=True) for size in pair]
    wide = [size for pair in zip(repeats, x.shape, strict=True) for size in pair]
    whole = [times * size for times, size in zip(repeats, x.shape, strict=True)]
    return b.reshape(b.expand(b.reshape(x, paired), wide), whole)


def _flip(b: GraphBuilder, x: MiniValue, dims: Sequence[int]) -> MiniValue:
    for dim in {dim_of(x, dim) for dim in dims} if x.rank else ():
        size = x.shape[dim]
        index = b.iota(size, start=size - 1, step=-1)
        x = b.emit("take", [x, index], x.dtype, x.shape, dim=dim)
    return x


OPS["aten.repeat.default"] = _repeat
OPS["aten.flip.default"] = _flip


def _getitem(b: GraphBuilder, values: Sequence[MiniValue], index: int) -> MiniValue:
    return values[index]


GETITEM = {operator.getitem: _getitem}
"""Picks one of several results; no operator of ATen's."""
assert not OPS.keys() & POINTWISE.keys()
