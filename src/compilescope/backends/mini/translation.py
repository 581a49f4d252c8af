"""An island of ATen operators, for the sizes and strides it is called with, as the compiler's text;
and the table of all operators that can be translated.

Shapes are not read from the graph: the operators' own rules give them again, so that one graph with
symbolic sizes can be written for any sizes that come.

The adapter declares exactly these as its supported ops, so an operator is added in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from compilescope.backends.mini.builder import (
    BY_TORCH,
    DType,
    GraphBuilder,
    MiniValue,
    Untranslatable,
)
from compilescope.backends.mini.ops import creation, lookups, matmul, pointwise, reductions, views
from compilescope.backends.mini.ops.views import GETITEM
from compilescope.instrument.torchapi.graphs.values import size_hint


class MiniOutput(NamedTuple):
    """One result as the compiler writes it: contiguous, its dimensions in the order of memory."""

    dtype: DType
    shape: tuple[int, ...]
    order: tuple[int, ...] | None
    """Dimensions of the result that the caller gets; None: as they are."""


class Translation(NamedTuple):
    text: str
    tensors: tuple[int, ...]
    """Which of the island's inputs are the graph's."""
    outputs: tuple[MiniOutput, ...]


def translate(module: GraphModule, inputs: Sequence[Any]) -> Translation:
    """`inputs` are tensors (their numbers are not looked at), and numbers for symbolic sizes."""
    builder = GraphBuilder()
    known: dict[Node, Any] = {}
    tensors: list[int] = []
    given = iter(enumerate(inputs))
    for node in module.graph.nodes:
        if node.op == "placeholder":
            number, value = next(given)
            if isinstance(value, torch.Tensor):
                tensors.append(number)
                value = builder.input(_dtype(value), _sizes(value.shape), _sizes(value.stride()))
            known[node] = value
        elif node.op == "call_function":
            known[node] = _translated(builder, node, known.__getitem__)
        elif node.op == "output":
            return _finished(builder, node, known, tensors)
        else:
            raise Untranslatable(f"a node of kind {node.op}")
    raise Untranslatable("a graph without an output")


def refusal(node: Node) -> str | None:
    """Why an operator of the table can't be translated as it is called here; None: it can.

    It is translated alone, from what the compiler noted of its inputs.
    """
    if node.op != "call_function" or str(node.target) not in OPS:
        return None
    try:
        result = _translated(GraphBuilder(), node, lambda given: _abstract(given, "input"))
    except Untranslatable as error:
        return str(error)
    except _OtherDtype:
        return None  # The dtype constraint says so in its own words.
    noted = _abstract_or_none(node)
    if noted is not None and not _same(result, noted):
        return f"the result would be {_shown(result)}, not {_shown(noted)}"
    return None


class _OtherDtype(Exception):
    """A tensor of a dtype that the compiler does not have."""


def _translated(builder: GraphBuilder, node: Node, value_of: Callable[[Node], Any]) -> Any:
    handler = GETITEM.get(node.target) or OPS.get(str(node.target))
    if handler is None:
        raise Untranslatable(f"{node.target} is not in the table of operators")
    args, kwargs = map_arg((node.args, node.kwargs), value_of)
    try:
        return handler(builder, *args, **kwargs)
    except TypeError as error:
        # An argument that the operator has and our handler does not know.
        raise Untranslatable(f"{node.target} is called with arguments not known here") from error


def _finished(
    builder: GraphBuilder, node: Node, known: dict[Node, Any], tensors: list[int]
) -> Translation:
    values, outputs = [], []
    for result in node.args[0]:
        value = known[result] if isinstance(result, Node) else result
        if not isinstance(value, MiniValue):
            raise Untranslatable(f"a result that is no tensor: {result}")
        order = _memory_order(_noted(result))
        if order is not None and len(order) == value.rank:
            value = builder.permute(value, order)
            back = tuple(sorted(range(value.rank), key=order.__getitem__))
        else:
            back = None
        values.append(value)
        outputs.append(MiniOutput(value.dtype, value.shape, back))
    return Translation(builder.text(values), tuple(tensors), tuple(outputs))


def _memory_order(noted: Any) -> tuple[int, ...] | None:
    """Dimensions from the outermost in memory to the innermost; None where that is their order."""
    if not isinstance(noted, torch.Tensor) or noted.layout is not torch.strided:
        return None
    steps = [size_hint(step) for step in noted.stride()]
    sizes = [size_hint(size) for size in noted.shape]
    if any(step is None or size is None for step, size in zip(steps, sizes, strict=True)):
        return None
    moving = [dim for dim, size in enumerate(sizes) if size != 1]
    if any(not steps[dim] for dim in moving):
        return None  # Broadcast: no memory is like that.
    ordered = sorted(moving, key=lambda dim: (-(steps[dim] or 0), dim))
    if ordered == moving:
        return None
    result = list(range(len(sizes)))
    for place, dim in zip(moving, ordered, strict=True):
        result[place] = dim
    return tuple(result)


def _noted(node: Any) -> Any:
    meta = node.meta if isinstance(node, Node) else {}
    return meta.get("val", meta.get("example_value"))


def _dtype(value: torch.Tensor) -> DType:
    if value.dtype not in BY_TORCH:
        raise _OtherDtype(str(value.dtype))
    return BY_TORCH[value.dtype]


def _sizes(sizes: Sequence[Any]) -> list[int]:
    """Of the running program, or as they were when the graph was made."""
    found = [size_hint(size) for size in sizes]
    if any(size is None for size in found):
        raise Untranslatable("a size that depends on data")
    return [size for size in found if size is not None]


def _abstract(node: Node, what: str) -> Any:
    value = _noted(node)
    if isinstance(value, torch.Tensor):
        return _abstract_tensor(value)
    if isinstance(value, (tuple, list)):
        return tuple(_abstract_tensor(each) for each in value)
    if isinstance(value, torch.SymInt):
        return _sizes([value])[0]
    if value is None or isinstance(value, (torch.SymFloat, torch.SymBool)):
        raise Untranslatable(f"an {what} of which nothing is known before the program runs")
    return value


def _abstract_tensor(value: torch.Tensor) -> MiniValue:
    if value.device.type != "cpu":
        raise Untranslatable(f"a tensor on {value.device}; the small compiler works on the CPU")
    if value.layout is not torch.strided:
        raise Untranslatable(f"a tensor of layout {value.layout}")
    return MiniValue(0, _dtype(value), tuple(_sizes(value.shape)))


def _abstract_or_none(node: Node) -> Any:
    try:
        return _abstract(node, "result")
    except (Untranslatable, _OtherDtype):
        return None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and not isinstance(one, MiniValue):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(_same, one, other))
    return isinstance(other, MiniValue) and one[1:] == other[1:]


def _shown(value: Any) -> str:
    if isinstance(value, MiniValue):
        return f"{value.dtype}{list(value.shape)}"
    return f"({', '.join(map(_shown, value))})" if isinstance(value, tuple) else repr(value)


Handler = Callable[..., Any]
"""Is given the builder and the operator's arguments; returns a Value, or a tuple of them."""
OPS: dict[str, Handler] = {
    **pointwise.OPS,
    **reductions.OPS,
    **views.OPS,
    **matmul.OPS,
    **lookups.OPS,
    **creation.OPS,
}
