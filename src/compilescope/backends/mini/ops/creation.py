"""Operators that create tensors: filled with one number, or with numbers in a row (`arange`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from compilescope.backends.mini.builder import (
    DType,
    GraphBuilder,
    MiniValue,
    Operand,
    Untranslatable,
    default_float,
    is_float,
    scalar_dtype,
)
from compilescope.backends.mini.ops.pointwise import dtype_of, on_cpu

Handler = Callable[..., Any]
OPS: dict[str, Handler] = {}


def _filled(
    b: GraphBuilder, shape: Sequence[int], value: Operand, dtype: DType, options: dict[str, Any]
) -> MiniValue:
    on_cpu(options.get("device"))
    if isinstance(value, MiniValue):
        raise Untranslatable("a tensor in place of a number")
    return b.constant(value, dtype, shape)


def _dtype(options: dict[str, Any], default: DType) -> DType:
    dtype: torch.dtype | None = options.get("dtype")
    return default if dtype is None else dtype_of(dtype)


def _full(b: GraphBuilder, shape: Sequence[int], value: Operand, **options: Any) -> MiniValue:
    default = scalar_dtype(value)
    return _filled(b, shape, value, _dtype(options, default), options)


def _full_like(b: GraphBuilder, x: MiniValue, value: Operand, **options: Any) -> MiniValue:
    return _filled(b, x.shape, value, _dtype(options, x.dtype), options)


def _new_full(
    b: GraphBuilder, x: MiniValue, shape: Sequence[int], value: Operand, **options: Any
) -> MiniValue:
    return _filled(b, shape, value, _dtype(options, x.dtype), options)


def _scalar_tensor(b: GraphBuilder, value: Operand, **options: Any) -> MiniValue:
    return _filled(b, (), value, _dtype(options, default_float()), options)


def _like(number: int) -> Handler:
    def handler(b: GraphBuilder, x: MiniValue, **options: Any) -> MiniValue:
        return _full_like(b, x, number, **options)

    return handler


def _plain(number: int) -> Handler:
    def handler(b: GraphBuilder, shape: Sequence[int], **options: Any) -> MiniValue:
        return _filled(b, shape, number, _dtype(options, default_float()), options)

    return handler


def _new(number: int) -> Handler:
    def handler(b: GraphBuilder, x: MiniValue, shape: Sequence[int], **options: Any) -> MiniValue:
        return _new_full(b, x, shape, number, **options)

    return handler


OPS["aten.full.default"] = _full
OPS["aten.full_like.default"] = _full_like
OPS["aten.new_full.default"] = _new_full
OPS["aten.scalar_tensor.default"] = _scalar_tensor
for _name, _value in (("zeros", 0), ("ones", 1)):
    OPS[f"aten.{_name}.default"] = _plain(_value)
    OPS[f"aten.{_name}_like.default"] = _like(_value)
    OPS[f"aten.new_{_name}.default"] = _new(_value)


def _fill(b: GraphBuilder, x: MiniValue, value: Operand) -> MiniValue:
    if isinstance(value, MiniValue):
        return b.expand(b.cast(value, x.dtype), x.shape)
    return b.constant(value, x.dtype, x.shape)


OPS["aten.fill.Scalar"] = OPS["aten.fill.Tensor"] = _fill


def _arange(
    b: GraphBuilder, start: float, end: float, step: float = 1, **options: Any
) -> MiniValue:
    on_cpu(options.get("device"))
    whole = all(isinstance(number, int) for number in (start, end, step))
    dtype = _dtype(options, "i64" if whole else default_float())
    if whole:
        length = max(0, -(-(int(end) - int(start)) // int(step)))
        row = b.iota(length, start=int(start), step=int(step))
        return b.cast(row, dtype)
    if not is_float(dtype):
        raise Untranslatable("arange of integers from floats")
    length = max(0, math.ceil((end - start) / step))
    # Computed in double, as torch does, and rounded once.
    steps = b.binary("mul", b.cast(b.iota(length), "f64"), b.constant(step, "f64"))
    return b.cast(b.binary("add", steps, b.constant(start, "f64")), dtype)


def _arange_to(b: GraphBuilder, end: float, **options: Any) -> MiniValue:
    return _arange(b, 0, end, **options)


def _iota(
    b: GraphBuilder, length: int, *, start: int = 0, step: int = 1, **options: Any
) -> MiniValue:
    on_cpu(options.get("device"))
    return b.cast(b.iota(length, start=start, step=step), _dtype(options, "i64"))


OPS["aten.arange.start_step"] = OPS["aten.arange.start"] = _arange
OPS["aten.arange.default"] = _arange_to
OPS["prims.iota.default"] = _iota
