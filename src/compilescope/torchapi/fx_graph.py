"""From a live FX graph to the portable one. Made once, where the graph is caught."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.fx import GraphModule

from compilescope.model.graph import Graph, Node, TensorInfo
from compilescope.model.stack import Frame
from compilescope.torchapi.stacks import origin

_STACK_LINE = re.compile(r'  File "([^"]+)", line (\d+), in (\S+)\n(?:    ([^\n]*))?')


def portable(module: GraphModule) -> Graph:
    frames: dict[str, Frame | None] = {}
    return Graph(tuple(_node(node, frames) for node in module.graph.nodes))


def _node(node: torch.fx.Node, frames: dict[str, Frame | None]) -> Node:
    trace = node.meta.get("stack_trace") or ""
    if trace not in frames:
        frames[trace] = _innermost(trace)
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    return Node(
        name=node.name,
        op=node.op,
        target=_target(node.target),
        inputs=tuple(other.name for other in node.all_input_nodes),
        outputs=_tensors(node.meta.get("example_value", node.meta.get("val"))),
        frame=frames[trace],
        source=_source_name(source),
    )


def _source_name(source: Any) -> str:
    # torch 2.13 made `name` a property; before it was a method.
    name = getattr(source, "name", "") if source is not None else ""
    return str(name() if callable(name) else name)


def _target(target: Any) -> str:
    if isinstance(target, str):
        return target
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(target)
    module = getattr(target, "__module__", None) or ""
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    return f"{module}.{name}".lstrip(".") if name else type(target).__qualname__


def _tensors(value: Any) -> tuple[TensorInfo, ...]:
    if isinstance(value, torch.Tensor):
        return (_tensor(value),)
    if isinstance(value, (tuple, list)):
        return tuple(_tensor(item) for item in value if isinstance(item, torch.Tensor))
    return ()


def _tensor(value: torch.Tensor) -> TensorInfo:
    shape = tuple(_size(size) for size in value.shape)
    known = [size for size in shape if isinstance(size, int)]
    strided = value.layout is torch.strided
    size_bytes = None
    if len(known) == len(shape):
        size_bytes = value.element_size()
        for size in known:
            size_bytes *= size
    return TensorInfo(
        shape=shape,
        dtype=str(value.dtype).removeprefix("torch."),
        stride=tuple(_size(size) for size in value.stride()) if strided else None,
        device=str(value.device),
        size_bytes=size_bytes,
    )


def _size(size: Any) -> int | str:
    return size if type(size) is int else str(size)


def _innermost(trace: str) -> Frame | None:
    """The user's line in a node's stack trace: the innermost that is not torch's own."""
    best: Frame | None = None
    for file, line, function, source in _STACK_LINE.findall(trace):
        frame = Frame(file, int(line), function, source=source, origin=origin(file))
        if best is None or frame.origin != "torch":
            best = frame
    return best
