"""Floating point operations of matrix products, convolutions and attention, from shapes alone.

A multiplication and an addition count as two, as everywhere. All other ops are not counted.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from compilescope.record.graph import Node, TensorInfo
from compilescope.record.python_text import parse_expression

Shape = tuple[int | str, ...]
Value = Shape | bool | str | list[bool] | None
"""An argument: the shape of a tensor, or a plain value."""


class _OperatorCall:
    """A call with its arguments by position or by name."""

    def __init__(
        self, positional: Sequence[Value], named: Mapping[str, Value], out: Shape | None
    ) -> None:
        self._positional = positional
        self._named = named
        self._out = out

    def value(self, index: int, name: str) -> Value:
        if index < len(self._positional):
            return self._positional[index]
        return self._named.get(name)

    def shape(self, index: int, *names: str) -> tuple[int, ...]:
        value = next((v for v in (self.value(index, name) for name in names) if v is not None), ())
        return _known(value)

    @property
    def out(self) -> tuple[int, ...]:
        if self._out is None:
            raise _UnknownSize
        return _known(self._out)

    @property
    def texts(self) -> list[Value]:
        return list(self._positional)


class _UnknownSize(Exception):
    """A size is symbolic, or was not printed."""


def _known(value: Value) -> tuple[int, ...]:
    if not isinstance(value, tuple) or not all(isinstance(size, int) for size in value):
        raise _UnknownSize
    return tuple(size for size in value if isinstance(size, int))


def _product(first: int, *names: str) -> Callable[[_OperatorCall], int]:
    """A matrix product: each element of the result is a sum over the first matrix's last size."""

    def count(call: _OperatorCall) -> int:
        left = call.shape(first, *names)
        if not left:
            raise _UnknownSize
        return 2 * math.prod(call.out) * left[-1]

    return count


def _batch_sum(call: _OperatorCall) -> int:
    batch, _, inner = call.shape(1, "batch1")
    return 2 * math.prod(call.out) * inner * batch


def _convolve(over: Sequence[int], weight: Sequence[int]) -> int:
    """`over` is the side with one window a point: the output, or a transposed one's input."""
    spatial = len(weight) - 2
    if spatial < 1 or len(over) < spatial + 1:
        raise _UnknownSize
    batch = over[0] if len(over) == len(weight) else 1
    return 2 * batch * math.prod(over[-spatial:]) * math.prod(weight)


def _convolution(call: _OperatorCall) -> int:
    transposed = call.value(6, "transposed")
    if not isinstance(transposed, bool):
        raise _UnknownSize
    over = call.shape(0, "input") if transposed else call.out
    return _convolve(over, call.shape(1, "weight"))


def _plain_convolution(call: _OperatorCall) -> int:
    return _convolve(call.out, call.shape(1, "weight"))


def _transposed_convolution(call: _OperatorCall) -> int:
    return _convolve(call.shape(0, "input"), call.shape(1, "weight"))


def _convolution_backward(call: _OperatorCall) -> int:
    """Each gradient asked for takes as much as the forward pass did."""
    transposed, wanted = call.value(7, "transposed"), call.value(10, "output_mask")
    if not isinstance(transposed, bool) or not isinstance(wanted, list):
        raise _UnknownSize
    over = call.shape(1, "input") if transposed else call.shape(0, "grad_output")
    return _convolve(over, call.shape(2, "weight")) * sum(wanted[:2])


def _attention(call: _OperatorCall) -> int:
    """Scores, then their product with the values. A causal mask saves nothing here."""
    query, key = call.shape(0, "query"), call.shape(1, "key")
    value = call.shape(2, "value")
    return _attend(query, key, value, products=(1, 1))


def _attention_backward(call: _OperatorCall) -> int:
    """Scores once more, then the gradients: of values, of scores, of queries and keys."""
    query, key = call.shape(1, "query"), call.shape(2, "key")
    return _attend(query, key, call.shape(3, "value"), products=(3, 2))


def _attend(
    query: Sequence[int], key: Sequence[int], value: Sequence[int], products: tuple[int, int]
) -> int:
    if min(len(query), len(key), len(value)) < 2:
        raise _UnknownSize
    length, width = query[-2:]
    points = 2 * math.prod(query[:-2]) * length * key[-2]
    return points * (products[0] * width + products[1] * value[-1])


def _einsum(call: _OperatorCall) -> int:
    """Two operands, and no index that only one of them has and the result lacks."""
    equation, *operands = call.texts
    if not isinstance(equation, str) or len(operands) != 2 or "..." in equation:
        raise _UnknownSize
    left, arrow, out = equation.replace(" ", "").partition("->")
    indices = left.split(",")
    if not arrow or len(indices) != 2 or any(len(set(part)) != len(part) for part in indices):
        raise _UnknownSize
    if (set(indices[0]) ^ set(indices[1])) - set(out):
        raise _UnknownSize
    sizes: dict[str, int] = {}
    for part, operand in zip(indices, operands, strict=True):
        shape = _known(operand)
        if len(shape) != len(part):
            raise _UnknownSize
        for index, size in zip(part, shape, strict=True):
            sizes[index] = max(size, sizes.get(index, 1))
    return 2 * math.prod(sizes.values())


def _undecided(call: _OperatorCall) -> int:
    raise _UnknownSize


_FIRST = _product(0, "input", "self", "mat1")
_SECOND = _product(1, "mat1", "batch1", "mat")
_FORMULAS: dict[str, Callable[[_OperatorCall], int]] = {
    **dict.fromkeys(
        ("mm", "bmm", "matmul", "linear", "mv", "dot", "_scaled_mm", "_int_mm"), _FIRST
    ),
    **dict.fromkeys(("addmm", "baddbmm", "addmv", "_addmm_activation"), _SECOND),
    "addbmm": _batch_sum,
    "einsum": _einsum,
    **dict.fromkeys(("convolution", "_convolution", "cudnn_convolution"), _convolution),
    **dict.fromkeys((f"conv{n}d" for n in "123"), _plain_convolution),
    **dict.fromkeys((f"conv_transpose{n}d" for n in "123"), _transposed_convolution),
    "convolution_backward": _convolution_backward,
}  # fmt: skip
_ATTENTION = tuple(
    f"_scaled_dot_product_{kind}attention{place}"
    for kind in ("flash_", "efficient_", "cudnn_", "fused_")
    for place in ("", "_for_cpu", "_overrideable")
)
_FORMULAS.update(dict.fromkeys(("scaled_dot_product_attention", *_ATTENTION), _attention))
_FORMULAS.update(
    {
        f"_scaled_dot_product_{kind}_attention{place}_backward": _attention_backward
        for kind in ("flash", "efficient", "cudnn", "fused")
        for place in ("", "_for_cpu", "_overrideable")
    }
)
# They hold matrix products, but not such as their arguments' shapes tell.
_FORMULAS.update(
    dict.fromkeys(
        ("multi_head_attention_forward", "_native_multi_head_attention", "flex_attention",
         "flex_attention_backward", "bilinear", "tensordot", "chain_matmul", "multi_dot", "lstm",
         "gru", "rnn_tanh", "rnn_relu", "mkldnn_rnn_layer", "_cudnn_rnn", "_thnn_fused_lstm_cell",
         "_flash_attention_forward", "_flash_attention_backward", "_efficient_attention_forward",
         "_efficient_attention_backward", "_grouped_mm", "_scaled_grouped_mm", "cdist"),
        _undecided,
    )
)  # fmt: skip
_NAMESPACES = ("aten", "torch", "_operator", "higher_order")


def op_name(node: Node) -> str:
    """Its own name, without namespace and overload: `mm`, `linear`, `add`."""
    return _own_name(node.target)


@lru_cache(1 << 12)
def _own_name(target: str) -> str:
    parts = target.split(".")
    if parts[0] in ("aten", "prims") and len(parts) > 2:
        return parts[-2]
    return parts[-1]


def is_counted(node: Node) -> bool:
    """Is it of a kind whose operations are counted?"""
    if node.op == "call_function":
        return op_name(node) in _FORMULAS and node.target.partition(".")[0] in _NAMESPACES
    return node.op == "call_method" and node.target.strip("_") in _FORMULAS


def count_flops(node: Node, tensors: Mapping[str, TensorInfo]) -> int | None:
    """Of a node that is counted; None where a size is symbolic or not known."""
    name = op_name(node) if node.op == "call_function" else node.target.strip("_")
    try:
        call = _read(node, tensors)
        return _FORMULAS[name](call)
    except (_UnknownSize, ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _read(node: Node, tensors: Mapping[str, TensorInfo]) -> _OperatorCall:
    shape = node.outputs[0].shape if node.outputs else None
    words = node.arguments.split(", ")
    if all(word in tensors for word in words):  # Most are; then there is nothing to parse.
        return _OperatorCall([tensors[word].shape for word in words], {}, shape)
    tree = parse_expression(f"f({node.arguments})")
    if not isinstance(tree, ast.Call):
        raise _UnknownSize
    positional = [_value(argument, tensors) for argument in tree.args]
    named = {
        keyword.arg: _value(keyword.value, tensors) for keyword in tree.keywords if keyword.arg
    }
    return _OperatorCall(positional, named, shape)


def _value(argument: ast.expr, tensors: Mapping[str, TensorInfo]) -> Value:
    if isinstance(argument, ast.Name):
        tensor = tensors.get(argument.id)
        return tensor.shape if tensor is not None else None
    if isinstance(argument, ast.Constant) and isinstance(argument.value, (bool, str)):
        return argument.value
    if isinstance(argument, ast.List):
        values = [item.value for item in argument.elts if isinstance(item, ast.Constant)]
        if len(values) == len(argument.elts) and all(isinstance(v, bool) for v in values):
            return [bool(v) for v in values]
    return None
