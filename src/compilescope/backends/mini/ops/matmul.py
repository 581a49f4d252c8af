"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilescope.backends.mini.builder import (
    GraphBuilder,
    MiniValue,
    Operand,
    Untranslatable,
    is_float,
)

Handler = Callable[..., Any]
OPS: dict[str, Handler] = {}


def _product(b: GraphBuilder, x: MiniValue, y: MiniValue) -> MiniValue:
    if not is_float(x.dtype) or x.dtype != y.dtype:
        raise Untranslatable(f"a matrix product of {x.dtype} and {y.dtype}")
    return b.matmul(x, y)


def _added(
    b: GraphBuilder,
    bias: MiniValue,
    x: MiniValue,
    y: MiniValue,
    *,
    beta: Operand = 1,
    alpha: Operand = 1,
) -> MiniValue:
    product = _product(b, x, y)
    if alpha != 1:
        product = b.binary("mul", product, b.as_value(alpha, product.dtype))
    if beta == 0:
        return product  # What the bias holds does not count then, a NaN neither.
    if bias.dtype != product.dtype:
        raise Untranslatable("a bias of another dtype")
    if beta != 1:
        bias = b.binary("mul", bias, b.as_value(beta, bias.dtype))
    return b.binary("add", bias, product)


def _mv(b: GraphBuilder, x: MiniValue, y: MiniValue) -> MiniValue:
    return b.reshape(_product(b, x, b.reshape(y, (y.shape[0], 1))), x.shape[:1])


def _dot(b: GraphBuilder, x: MiniValue, y: MiniValue) -> MiniValue:
    row, column = b.reshape(x, (1, x.shape[0])), b.reshape(y, (y.shape[0], 1))
    return b.reshape(_product(b, row, column), ())


OPS["aten.mm.default"] = OPS["aten.bmm.default"] = _product
OPS["aten.addmm.default"] = OPS["aten.baddbmm.default"] = _added
OPS["aten.mv.default"] = _mv
OPS["aten.dot.default"] = _dot
