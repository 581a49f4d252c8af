"""Small graphs for the constraints' own examples."""

from __future__ import annotations

import math
from typing import Any

from compilescope.record.graph import Call, Graph, Node, TensorInfo
from compilescope.record.stack import Frame

_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2}
_AT = Frame("model.py", 12, "forward", source="        y = step(x)")


def tensor(
    shape: tuple[int | str, ...],
    dtype: str = "float32",
    stride: tuple[int | str, ...] | None = None,
    *,
    storage: int | None = None,
) -> TensorInfo:
    """Contiguous unless told otherwise."""
    sizes = [size for size in shape if isinstance(size, int)]
    known = len(sizes) == len(shape)
    if stride is None and known:
        stride = tuple(math.prod(sizes[at + 1 :]) for at in range(len(sizes)))
    size_bytes = math.prod(sizes) * _BYTES.get(dtype, 1) if known else None
    return TensorInfo(shape, dtype, stride, "cpu", size_bytes, storage, size_bytes)


def node(
    name: str,
    op: str,
    *outputs: TensorInfo,
    inputs: tuple[str, ...] = (),
    constants: dict[str, Any] | None = None,
) -> Node:
    """A node that calls one operator, on the user's line."""
    call = Call(op, (), outputs, constants or {})
    return Node(name, "call_function", op, inputs, outputs, _AT, calls=(call,))


def placeholder(name: str, *outputs: TensorInfo) -> Node:
    return Node(name, "placeholder", name, (), outputs)


def graph(*nodes: Node) -> Graph:
    return Graph(nodes)
