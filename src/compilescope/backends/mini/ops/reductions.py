"""Reductions: sums, means, products, extremes and where they are, `any` and `all`, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from compilescope.backends.mini.builder import GraphBuilder, MiniValue, Untranslatable, is_float
from compilescope.backends.mini.ops.pointwise import dtype_of

Handler = Callable[..., Any]
OPS: dict[str, Handler] = {}
Dims = Sequence[int] | int | None


def dims_of(value: MiniValue, dims: Dims) -> list[int]:
    """Not negative; all where none is named."""
    if isinstance(dims, int):
        dims = [dims]
    if not dims:
        return list(range(value.rank))
    return [dim_of(value, dim) for dim in dims] if value.rank else []


def dim_of(value: MiniValue, dim: int) -> int:
    return dim % max(value.rank, 1)


def _sum(
    b: GraphBuilder,
    x: MiniValue,
    dims: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> MiniValue:
    return _summed(b, "sum", x, dims_of(x, dims), keepdim, dtype)


def _summed(
    b: GraphBuilder,
    op: str,
    x: MiniValue,
    dims: list[int],
    keepdim: bool,
    dtype: torch.dtype | None,
) -> MiniValue:
    if dtype is not None:
        x = b.cast(x, dtype_of(dtype))
        if x.dtype == "bool":
            raise Untranslatable(f"{op} to bool")
    elif not is_float(x.dtype):
        x = b.cast(x, "i64")
    return b.reduce(op, x, dims, keepdim)


def _sum_all(b: GraphBuilder, x: MiniValue, *, dtype: torch.dtype | None = None) -> MiniValue:
    return _sum(b, x, dtype=dtype)


def _prims_sum(
    b: GraphBuilder, x: MiniValue, dims: Dims = None, *, output_dtype: torch.dtype | None = None
) -> MiniValue:
    """Of no dimensions it is nothing, where ATen's is all."""
    named = list(range(x.rank)) if dims is None else [dim_of(x, d) for d in _listed(dims)]
    total = b.reduce("sum", x, named, False)
    return total if output_dtype is None else b.cast(total, dtype_of(output_dtype))


def _listed(dims: Sequence[int] | int) -> list[int]:
    return [dims] if isinstance(dims, int) else list(dims)


def _mean(
    b: GraphBuilder,
    x: MiniValue,
    dims: Dims = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> MiniValue:
    if dtype is not None:
        x = b.cast(x, dtype_of(dtype))
    if not is_float(x.dtype):
        raise Untranslatable("mean of integers")
    named = dims_of(x, dims)
    total = b.reduce("sum", x, named, keepdim)
    return b.binary("div", total, b.constant(count_of(x, named), x.dtype))


def count_of(x: MiniValue, dims: Sequence[int]) -> int:
    return math.prod(x.shape[dim] for dim in dims)


def _mean_all(b: GraphBuilder, x: MiniValue, *, dtype: torch.dtype | None = None) -> MiniValue:
    return _mean(b, x, dtype=dtype)


def _var(
    b: GraphBuilder,
    x: MiniValue,
    dims: Dims = None,
    *,
    correction: float | None = 1,
    keepdim: bool = False,
) -> MiniValue:
    return _var_mean(b, x, dims, correction=correction, keepdim=keepdim)[0]


def _var_mean(
    b: GraphBuilder,
    x: MiniValue,
    dims: Dims = None,
    *,
    correction: float | None = 1,
    keepdim: bool = False,
) -> tuple[MiniValue, MiniValue]:
    if not is_float(x.dtype):
        raise Untranslatable("variance of integers")
    named = dims_of(x, dims)
    count = count_of(x, named)
    shape = [s for d, s in enumerate(x.shape) if d not in named]
    mean = b.binary("div", b.reduce("sum", x, named, True), b.constant(count, x.dtype))
    apart = b.binary("sub", x, mean)
    total = b.reduce("sum", b.binary("mul", apart, apart), named, keepdim)
    free = max(0.0, count - (1 if correction is None else correction))
    return (
        b.binary("div", total, b.constant(free, x.dtype)),
        mean if keepdim else b.reshape(mean, shape),
    )


def _prims_var(
    b: GraphBuilder,
    x: MiniValue,
    dims: Dims,
    correction: float | None = 1,
    *,
    output_dtype: torch.dtype | None = None,
) -> MiniValue:
    return _var(b, x, dims, correction=correction)


def _std(b: GraphBuilder, x: MiniValue, dims: Dims = None, **options: Any) -> MiniValue:
    return b.unary("sqrt", _var(b, x, dims, **options))


OPS["aten.sum.dim_IntList"] = _sum
OPS["aten.sum.default"] = _sum_all
OPS["prims.sum.default"] = _prims_sum
OPS["aten.mean.dim"] = _mean
OPS["aten.mean.default"] = _mean_all
OPS["aten.var.correction"] = _var
OPS["aten.var_mean.correction"] = _var_mean
OPS["prims.var.default"] = _prims_var
OPS["aten.std.correction"] = _std


def _prod(
    b: GraphBuilder,
    x: MiniValue,
    dim: int,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> MiniValue:
    return _summed(b, "prod", x, dims_of(x, dim), keepdim, dtype)


def _prod_all(b: GraphBuilder, x: MiniValue, *, dtype: torch.dtype | None = None) -> MiniValue:
    return _summed(b, "prod", x, dims_of(x, None), False, dtype)


OPS["aten.prod.dim_int"] = _prod
OPS["aten.prod.default"] = _prod_all


def _not_empty(x: MiniValue, dims: Sequence[int]) -> None:
    """Eager mode raises: of nothing there is no largest."""
    if any(x.shape[dim] == 0 for dim in dims):
        raise Untranslatable("an extreme of no elements")


def _extreme(op: str) -> Handler:
    def handler(
        b: GraphBuilder, x: MiniValue, dims: Dims = None, keepdim: bool = False
    ) -> MiniValue:
        named = dims_of(x, dims)
        _not_empty(x, named)
        return b.reduce(op, x, named, keepdim)

    return handler


OPS["aten.amax.default"] = OPS["prims.amax.default"] = _extreme("max")
OPS["aten.amin.default"] = OPS["prims.amin.default"] = _extreme("min")
OPS["aten.max.default"] = _extreme("max")
OPS["aten.min.default"] = _extreme("min")


def _argument(op: str) -> Handler:
    def handler(
        b: GraphBuilder, x: MiniValue, dim: int | None = None, keepdim: bool = False
    ) -> MiniValue:
        if x.dtype == "bool":
            raise Untranslatable(f"{op} of bool")
        if dim is None or not x.rank:
            _not_empty(x, range(x.rank))
            flat = b.reduce(op, b.reshape(x, (x.elements,)), [0], False)
            return b.reshape(flat, (1,) * x.rank) if keepdim else flat
        _not_empty(x, [dim_of(x, dim)])
        return b.reduce(op, x, [dim_of(x, dim)], keepdim)

    return handler


OPS["aten.argmax.default"] = _argument("argmax")
OPS["aten.argmin.default"] = _argument("argmin")


def _with_place(op: str) -> Handler:
    value_of, place_of = _extreme(op), _argument(f"arg{op}")

    def handler(
        b: GraphBuilder, x: MiniValue, dim: int, keepdim: bool = False
    ) -> tuple[MiniValue, MiniValue]:
        return value_of(b, x, dim, keepdim), place_of(b, x, dim, keepdim)

    return handler


OPS["aten.max.dim"] = _with_place("max")
OPS["aten.min.dim"] = _with_place("min")


def _truth(op: str) -> Handler:
    def handler(
        b: GraphBuilder, x: MiniValue, dims: Dims = None, keepdim: bool = False
    ) -> MiniValue:
        return b.reduce(op, b.cast(x, "bool"), dims_of(x, dims), keepdim)

    return handler


for _name in ("any", "all"):
    for _suffix in ("default", "dim", "dims"):
        OPS[f"aten.{_name}.{_suffix}"] = _truth(_name)


def _softmax(b: GraphBuilder, x: MiniValue, dim: int, half_to_float: bool = False) -> MiniValue:
    shifted = _shifted(b, x, dim, half_to_float)
    exponents = b.unary("exp", shifted)
    total = b.reduce("sum", exponents, dims_of(x, dim), bool(x.rank))
    # One division a row, and then products, as PyTorch's own kernel does.
    return b.binary("mul", exponents, b.unary("reciprocal", total))


def _log_softmax(b: GraphBuilder, x: MiniValue, dim: int, half_to_float: bool = False) -> MiniValue:
    shifted = _shifted(b, x, dim, half_to_float)
    total = b.reduce("sum", b.unary("exp", shifted), dims_of(x, dim), bool(x.rank))
    return b.binary("sub", shifted, b.unary("log", total))


def _shifted(b: GraphBuilder, x: MiniValue, dim: int, half_to_float: bool) -> MiniValue:
    if half_to_float or not is_float(x.dtype):
        raise Untranslatable("softmax of other dtypes than float32 and float64")
    if not x.elements:
        raise Untranslatable("softmax of no elements")
    return b.binary("sub", x, b.reduce("max", x, dims_of(x, dim), bool(x.rank)))


OPS["aten._softmax.default"] = _softmax
OPS["aten._log_softmax.default"] = _log_softmax
