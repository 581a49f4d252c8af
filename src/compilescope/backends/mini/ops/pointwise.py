"""Pointwise operators: arithmetic, comparisons, logic, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from compilescope.backends.mini.builder import (
    BY_TORCH,
    DType,
    GraphBuilder,
    MiniValue,
    Operand,
    Untranslatable,
    is_float,
    operand_type,
)

Handler = Callable[..., Any]
OPS: dict[str, Handler] = {}


def dtype_of(dtype: torch.dtype) -> DType:
    if dtype not in BY_TORCH:
        raise Untranslatable(f"{dtype} is not a dtype of the small compiler")
    return BY_TORCH[dtype]


def _float_unary(op: str) -> Handler:
    def handler(b: GraphBuilder, x: MiniValue) -> MiniValue:
        return b.unary(op, b.promote(x, floating=True)[0])

    return handler


for _name, _op in {
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "reciprocal", "sin": "sin", "cos": "cos",
    "tanh": "tanh", "erf": "erf", "sigmoid": "sigmoid",
}.items():  # fmt: skip
    OPS[f"aten.{_name}.default"] = _float_unary(_op)


def _rounding(op: str) -> Handler:
    """Integers are whole already."""

    def handler(b: GraphBuilder, x: MiniValue) -> MiniValue:
        return b.unary(op, x) if is_float(x.dtype) else x

    return handler


for _name in ("floor", "ceil", "trunc", "round"):
    OPS[f"aten.{_name}.default"] = _rounding(_name)


def _number_unary(op: str) -> Handler:
    def handler(b: GraphBuilder, x: MiniValue) -> MiniValue:
        if x.dtype == "bool":
            raise Untranslatable(f"{op} of bool")
        return b.unary(op, x)

    return handler


for _name in ("neg", "abs", "relu"):
    OPS[f"aten.{_name}.default"] = _number_unary(_name)


def _sign(b: GraphBuilder, x: MiniValue) -> MiniValue:
    return x if x.dtype == "bool" else b.unary("sign", x)


OPS["aten.sign.default"] = OPS["aten.sgn.default"] = _sign


def _float_question(op: str) -> Handler:
    def handler(b: GraphBuilder, x: MiniValue) -> MiniValue:
        if not is_float(x.dtype):
            return b.constant(False, "bool", x.shape)
        return b.unary(op, x, truth=True)

    return handler


OPS["aten.isnan.default"] = _float_question("is_nan")
OPS["aten.isinf.default"] = _float_question("is_inf")


def _logical_not(b: GraphBuilder, x: MiniValue) -> MiniValue:
    return b.unary("logical_not", x, truth=True)


def _bitwise_not(b: GraphBuilder, x: MiniValue) -> MiniValue:
    if is_float(x.dtype):
        raise Untranslatable("bitwise_not of floats")
    return b.unary("bitwise_not", x)


OPS["aten.logical_not.default"] = _logical_not
OPS["aten.bitwise_not.default"] = _bitwise_not


def _scaled(b: GraphBuilder, value: MiniValue, alpha: Operand) -> MiniValue:
    return value if alpha == 1 else b.binary("mul", value, b.as_value(alpha, value.dtype))


def _add(b: GraphBuilder, x: Operand, y: Operand, *, alpha: Operand = 1) -> MiniValue:
    one, other = b.promote(x, y)
    if one.dtype == "bool":
        if alpha != 1:
            raise Untranslatable("add of bool with alpha")
        return b.binary("logical_or", one, other, truth=True)
    return b.binary("add", one, _scaled(b, other, alpha))


def _sub(b: GraphBuilder, x: Operand, y: Operand, *, alpha: Operand = 1) -> MiniValue:
    one, other = b.promote(x, y)
    if one.dtype == "bool":
        raise Untranslatable("sub of bool")
    return b.binary("sub", one, _scaled(b, other, alpha))


def _rsub(b: GraphBuilder, x: Operand, y: Operand, alpha: Operand = 1) -> MiniValue:
    return _sub(b, y, x, alpha=alpha)


def _mul(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
    one, other = b.promote(x, y)
    if one.dtype == "bool":
        return b.binary("logical_and", one, other, truth=True)
    return b.binary("mul", one, other)


def _div(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
    return b.binary("div", *b.promote(x, y, floating=True))


def _div_mode(
    b: GraphBuilder, x: Operand, y: Operand, *, rounding_mode: str | None = None
) -> MiniValue:
    if rounding_mode is None:
        return _div(b, x, y)
    _no_integer_zero(x, y)
    op = "floor_div" if rounding_mode == "floor" else "trunc_div"
    one, other = b.promote(x, y)
    if one.dtype == "bool":
        raise Untranslatable("integer division of bool")
    return b.binary(op, one, other)


def _floor_divide(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
    return _div_mode(b, x, y, rounding_mode="floor")


def _modulo(op: str) -> Handler:
    def handler(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
        _no_integer_zero(x, y)
        one, other = b.promote(x, y)
        if one.dtype == "bool":
            raise Untranslatable(f"{op} of bool")
        return b.binary(op, one, other)

    return handler


def _no_integer_zero(x: Operand, y: Operand) -> None:
    """Eager mode raises; the compiler has no error for it."""
    if not isinstance(y, MiniValue) and y == 0 and not is_float(operand_type([x, y])):
        raise Untranslatable("integer division by zero")


def _prims_div(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
    """Integers are divided as C does."""
    one, other = b.promote(x, y)
    return b.binary("div" if is_float(one.dtype) else "trunc_div", one, other)


for _suffix in ("Tensor", "Scalar"):
    OPS[f"aten.add.{_suffix}"] = _add
    OPS[f"aten.sub.{_suffix}"] = _sub
    OPS[f"aten.rsub.{_suffix}"] = _rsub
    OPS[f"aten.mul.{_suffix}"] = _mul
    OPS[f"aten.div.{_suffix}"] = _div
    OPS[f"aten.div.{_suffix}_mode"] = _div_mode
    OPS[f"aten.remainder.{_suffix}"] = _modulo("remainder")
    OPS[f"aten.fmod.{_suffix}"] = _modulo("fmod")
OPS["aten.remainder.Scalar_Tensor"] = _modulo("remainder")
OPS["aten.floor_divide.default"] = OPS["aten.floor_divide.Scalar"] = _floor_divide
OPS["prims.div.default"] = _prims_div
OPS["prims.mul.default"] = _mul
OPS["prims.add.default"] = _add
OPS["prims.sub.default"] = _sub


def _pow(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
    one, other = b.promote(x, y)
    if one.dtype == "bool":
        raise Untranslatable("pow of bool")
    if not isinstance(y, MiniValue):
        if not is_float(one.dtype):
            if y < 0:
                raise Untranslatable("integers to negative powers")
        elif y in _POWERS:
            return _POWERS[float(y)](b, one)
    return b.binary("pow", one, other)


def _square(b: GraphBuilder, x: MiniValue) -> MiniValue:
    if x.dtype == "bool":
        raise Untranslatable("pow of bool")
    return b.binary("mul", x, x)


# Exponents that torch's own kernel treats by themselves, so that infinities and zeros agree.
_POWERS: dict[float, Callable[[GraphBuilder, MiniValue], MiniValue]] = {
    0.5: lambda b, x: b.unary("sqrt", x),
    1.0: lambda b, x: x,
    2.0: _square,
    3.0: lambda b, x: b.binary("mul", _square(b, x), x),
    -0.5: lambda b, x: b.unary("rsqrt", x),
    -1.0: lambda b, x: b.unary("reciprocal", x),
    -2.0: lambda b, x: b.unary("reciprocal", _square(b, x)),
}
OPS["aten.pow.Tensor_Scalar"] = OPS["aten.pow.Tensor_Tensor"] = OPS["aten.pow.Scalar"] = _pow
OPS["aten.square.default"] = _square


def _atan2(b: GraphBuilder, x: MiniValue, y: MiniValue) -> MiniValue:
    return b.binary("atan2", *b.promote(x, y, floating=True))


OPS["aten.atan2.default"] = _atan2


def _extreme(op: str) -> Handler:
    def handler(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
        return b.binary(op, *b.promote(x, y))

    return handler


OPS["aten.maximum.default"] = _extreme("maximum")
OPS["aten.minimum.default"] = _extreme("minimum")
for _suffix in ("default", "Tensor"):
    OPS[f"aten.clamp_min.{_suffix}"] = _extreme("maximum")
    OPS[f"aten.clamp_max.{_suffix}"] = _extreme("minimum")


def _clamp(
    b: GraphBuilder, x: MiniValue, min: Operand | None = None, max: Operand | None = None
) -> MiniValue:
    given = [bound for bound in (min, max) if bound is not None]
    dtype = operand_type([x, *given])
    value = b.cast(x, dtype)
    if any(not isinstance(bound, MiniValue) and math.isnan(bound) for bound in given):
        raise Untranslatable("clamp to NaN")
    # The upper bound wins where the two cross, as in torch.
    if min is not None:
        value = b.binary("maximum", value, b.as_value(min, dtype))
    if max is not None:
        value = b.binary("minimum", value, b.as_value(max, dtype))
    return value


OPS["aten.clamp.default"] = OPS["aten.clamp.Tensor"] = _clamp


def _comparison(op: str) -> Handler:
    def handler(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
        return b.binary(op, *b.promote(x, y), truth=True)

    return handler


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    OPS[f"aten.{_name}.Tensor"] = OPS[f"aten.{_name}.Scalar"] = _comparison(_name)


def _logical(op: str) -> Handler:
    def handler(b: GraphBuilder, x: MiniValue, y: MiniValue) -> MiniValue:
        return b.binary(op, _truth(b, x), _truth(b, y), truth=True)

    return handler


def _truth(b: GraphBuilder, x: MiniValue) -> MiniValue:
    return x if x.dtype == "bool" else b.cast(x, "bool")


for _name in ("logical_and", "logical_or", "logical_xor"):
    OPS[f"aten.{_name}.default"] = _logical(_name)


def _bitwise(op: str) -> Handler:
    def handler(b: GraphBuilder, x: Operand, y: Operand) -> MiniValue:
        one, other = b.promote(x, y)
        if is_float(one.dtype):
            raise Untranslatable(f"{op} of floats")
        return b.binary(op, one, other)

    return handler


for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    OPS[f"aten.{_name}.Tensor"] = OPS[f"aten.{_name}.Scalar"] = _bitwise(_name)


def _where(b: GraphBuilder, condition: MiniValue, x: Operand, y: Operand) -> MiniValue:
    if condition.dtype != "bool":
        raise Untranslatable("where with a condition that is not bool")
    return b.where(condition, *b.promote(x, y))


def _masked_fill(b: GraphBuilder, x: MiniValue, mask: MiniValue, value: Operand) -> MiniValue:
    if mask.dtype != "bool":
        raise Untranslatable("masked_fill with a mask that is not bool")
    dtype = operand_type([x, value]) if not isinstance(value, MiniValue) else x.dtype
    if dtype != x.dtype:
        raise Untranslatable("masked_fill with a number of another kind")
    return b.where(mask, b.as_value(value, x.dtype), x)


OPS["aten.where.self"] = OPS["aten.where.ScalarSelf"] = OPS["aten.where.ScalarOther"] = _where
OPS["aten.masked_fill.Scalar"] = OPS["aten.masked_fill.Tensor"] = _masked_fill


def _convert(b: GraphBuilder, x: MiniValue, dtype: torch.dtype) -> MiniValue:
    return b.cast(x, dtype_of(dtype))


def _to_copy(
    b: GraphBuilder, x: MiniValue, *, dtype: torch.dtype | None = None, device: Any = None, **_: Any
) -> MiniValue:
    on_cpu(device)
    return x if dtype is None else _convert(b, x, dtype)


def on_cpu(device: Any) -> None:
    if device is not None and torch.device(device).type != "cpu":
        raise Untranslatable(f"a tensor on {device}; the small compiler works on the CPU")


def _same(b: GraphBuilder, x: MiniValue, **_: Any) -> MiniValue:
    return x


OPS["prims.convert_element_type.default"] = _convert
OPS["aten._to_copy.default"] = _to_copy
for _name in ("clone", "alias", "detach", "lift_fresh_copy", "positive"):
    OPS[f"aten.{_name}.default"] = _same
