"""From a live FX graph to the portable one, and from a later stage's nodes to their origins.

Made once, where the graph is caught. Which memory its tensors share, and what autograd keeps of it
for the backward pass, is read off the compiler's own fake tensors: they share storages as real ones
would, and autograd has noted on them what it saves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.stacks import origin
from compilescope.record.graph import Graph, Node, Origins, TensorInfo
from compilescope.record.stack import Frame, plain_function_name

# Tensors that are in a vmap wrap what they stand for. Absent in builds without functorch.
_functorch = getattr(torch._C, "_functorch", None)
_is_wrapped = getattr(_functorch, "is_functorch_wrapped_tensor", None)
_unwrapped = getattr(_functorch, "get_unwrapped", None)
_saved_names: dict[type, tuple[str, ...]] = {}


class Storages:
    """Numbers the storages of a graph, in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def place(self, value: torch.Tensor) -> tuple[int | None, int | None]:
        """Its storage's number and bytes; None for what has none, or one of symbolic size."""
        try:
            if _is_wrapped is not None and _unwrapped is not None:
                while _is_wrapped(value):
                    value = _unwrapped(value)
            storage = value.untyped_storage()
            address, size = storage._cdata, storage.nbytes()
        except (NotImplementedError, RuntimeError, AttributeError) as error:
            let_through(error)
            return None, None  # A sparse tensor, or a subclass that has none.
        number = self._numbers.setdefault(address, len(self._numbers))
        return number, size if type(size) is int else None


class SavedTensors:
    """What autograd keeps, node by node. Ask for the nodes in order of execution.

    It keeps a function as long as something holds a result that leads back to it: at the end
    these are the graph's own results.
    """

    def __init__(self, results: Iterable[torch.Tensor]) -> None:
        # Functions are held, not only known by their addresses: those are used again.
        self._waiting = set(_functions(results, set()))
        self._made: list[torch.Tensor] = []

    def of(self, values: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """What the functions that made these values keep, beyond those of earlier nodes."""
        found: list[torch.Tensor] = []
        for function in _functions(values, None, self._waiting):
            self._waiting.discard(function)
            for value in _saved(function):
                if function.name() == "NativeDropoutBackward0" and value.device.type == "cpu":
                    value = self._mask(function, value)
                found.append(value)
        return found

    def _mask(self, function: Any, mask: torch.Tensor) -> torch.Tensor:
        """Dynamo traces dropout with a mask of bytes; a CPU runs it with one of numbers (2.13)."""
        described = getattr(function, "_input_metadata", None)
        if mask.dtype is not torch.bool or not described:
            return mask
        self._made.append(mask.to(described[0].dtype))
        return self._made[-1]


def _functions(
    values: Iterable[torch.Tensor], seen: set[Any] | None, within: set[Any] | None = None
) -> Iterator[Any]:
    """The functions that lead to these values; of those within a set only."""
    seen = set() if seen is None else seen
    waiting = [value.grad_fn for value in values if value.grad_fn is not None]
    while waiting:
        function = waiting.pop()
        if function in seen or (within is not None and function not in within):
            continue
        seen.add(function)
        waiting += [before for before, _ in function.next_functions if before is not None]
        yield function


def _saved(function: Any) -> Iterator[torch.Tensor]:
    names = _saved_names.get(type(function))
    if names is None:
        # A function that was written in Python has them all under one name.
        names = tuple(n for n in dir(function) if n.startswith("_saved_") or n == "saved_tensors")
        _saved_names[type(function)] = names
    for name in names:
        try:
            value = getattr(function, name)
        except RuntimeError as error:  # It was freed, or changed in place since.
            let_through(error)
            continue
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                yield item


_NOT_NOTED = object()
_STACK_LINE = re.compile(r'  File "([^"]+)", line (\d+), in (\S+)\n(?:    ([^\n]*))?')


def portable(module: GraphModule, *, saved: bool = False) -> Graph:
    """`saved` asks also for what autograd will keep for the backward pass."""
    places: dict[str, _TracePlace] = {}
    stacks: list[tuple[Frame, ...]] = []
    values = _Values(module, saved)
    nodes = tuple(_node(node, places, stacks, values) for node in module.graph.nodes)
    return Graph(nodes, tuple(stacks))


class _Values:
    """What the nodes of a graph give."""

    def __init__(self, module: GraphModule, saved: bool) -> None:
        self._module = module
        self._storages = Storages()
        self._saved = SavedTensors(self._results()) if saved else None
        self._graphs: dict[str, Graph] = {}

    def _results(self) -> list[torch.Tensor]:
        returned = [node for node in self._module.graph.nodes if node.op == "output"]
        given = [arg for node in returned for arg in node.all_input_nodes]
        return [value for arg in given for value in _flat(self.noted(arg))]

    def noted(self, node: torch.fx.Node) -> Any:
        value = node.meta.get("example_value", node.meta.get("val", _NOT_NOTED))
        if value is _NOT_NOTED and node.op == "get_attr":
            return self._attribute(node)
        return value

    def _attribute(self, node: torch.fx.Node) -> Any:
        value: Any = self._module
        for name in str(node.target).split("."):
            value = getattr(value, name, _NOT_NOTED)
        return value

    def tensors(self, value: Any) -> tuple[TensorInfo, ...]:
        return tuple(tensor_info(item, self._storages) for item in _flat(value))

    def saved(self, node: torch.fx.Node, value: Any) -> tuple[TensorInfo, ...]:
        if self._saved is None or node.op == "placeholder":
            return ()
        kept = self._saved.of(_flat(value))
        if _is_checkpoint(node):
            # It runs its body again in the backward pass, from what it was given.
            kept = [item for given in node.all_input_nodes for item in _flat(self.noted(given))]
        return tuple(dict.fromkeys(tensor_info(item, self._storages) for item in kept))

    def graphs(self, node: torch.fx.Node) -> tuple[Graph, ...]:
        """Those that a higher-order operator such as `cond` or a checkpoint is given."""
        if not isinstance(node.target, torch._ops.HigherOrderOperator):
            return ()
        given = [arg for arg in node.all_input_nodes if arg.op == "get_attr"]
        held = {arg.name: self._attribute(arg) for arg in given}
        for name, part in held.items():
            if isinstance(part, GraphModule) and name not in self._graphs:
                keeps = self._saved is not None and not _is_checkpoint(node)
                self._graphs[name] = portable(part, saved=keeps)
        return tuple(self._graphs[name] for name in held if name in self._graphs)


def origins(module: GraphModule) -> Origins:
    """Which nodes of Dynamo's graph the nodes of a later one came from, by torch's own notes."""
    nodes: dict[str, tuple[str, ...]] = {}
    gradients: dict[str, str] = {}
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        meta = node.meta
        sources = tuple(dict.fromkeys(map(_first_name, meta.get("from_node") or ())))
        # A node of the backward pass has no source of its own, only the forward call's.
        forward = _called(meta.get("fwd_source_fn_stack") or meta.get("source_fn_stack"))
        if any(sources):
            nodes[node.name] = sources
        elif forward:
            gradients[node.name] = forward
    return Origins(nodes, gradients)


def _first_name(source: Any) -> str:
    """Sources nest, one level for each time that the graph was traced anew."""
    while inner := getattr(source, "from_node", None):
        source = inner[0]
    return str(getattr(source, "name", ""))


def _called(stack: Any) -> str:
    """torch notes each call as a name and what was called; the innermost is the node's own."""
    innermost = stack[-1] if isinstance(stack, list) and stack else None
    return str(innermost[0]) if isinstance(innermost, tuple) and innermost else ""


class _TracePlace(NamedTuple):
    """What a stack trace tells of a node."""

    frame: Frame | None
    stack: int | None


def _node(
    node: torch.fx.Node,
    places: dict[str, _TracePlace],
    stacks: list[tuple[Frame, ...]],
    values: _Values,
) -> Node:
    trace = node.meta.get("stack_trace") or ""
    place = places.get(trace)
    if place is None:
        place = places[trace] = _place(trace, stacks)
    argument = node.meta.get("grapharg")
    source = getattr(argument, "source", None)
    value = values.noted(node)
    outputs = values.tensors(value)
    return Node(
        name=node.name,
        op=node.op,
        target=_target(node.target),
        inputs=tuple(other.name for other in node.all_input_nodes),
        outputs=outputs,
        frame=place.frame,
        source=_source_name(source),
        alias=_alias(node),
        stack=place.stack,
        no_tensor=not outputs and value is not _NOT_NOTED,
        saved=values.saved(node, value),
        graphs=values.graphs(node),
        unasked=_for_autograd(node) if node.op == "output" else (),
    )


def _for_autograd(node: torch.fx.Node) -> tuple[int, ...]:
    """Which of a graph's results are saved for the backward pass, and nothing else."""
    described = node.meta.get("desc")
    returned = node.args[0] if node.args else ()
    if not isinstance(described, (list, tuple)) or not isinstance(returned, (list, tuple)):
        return ()
    kinds = [type(each).__name__ for each in described]
    caller = {
        value.name
        for value, kind in zip(returned, kinds, strict=False)
        if isinstance(value, torch.fx.Node) and not kind.startswith("SavedForBackwards")
    }
    names = [other.name for other in node.all_input_nodes]
    return tuple(at for at, name in enumerate(names) if name not in caller)


def _alias(node: torch.fx.Node) -> str:
    name = _called(node.meta.get("source_fn_stack"))
    return "" if name == node.name else name


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
    if name and "<locals>" in name:
        # torch makes some of its functions within others (max_pool2d) and names them afterwards.
        name = getattr(target, "__name__", name)
    return f"{module}.{name}".lstrip(".") if name else type(target).__qualname__


def _is_checkpoint(node: torch.fx.Node) -> bool:
    return "checkpoint" in _target(node.target)


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return []
    return [tensor for item in value for tensor in _flat(item)]


def tensor_info(value: torch.Tensor, storages: Storages | None = None) -> TensorInfo:
    shape = tuple(_size(size) for size in value.shape)
    known = [size for size in shape if isinstance(size, int)]
    strided = value.layout is torch.strided
    size_bytes = None
    if len(known) == len(shape):
        size_bytes = value.element_size()
        for size in known:
            size_bytes *= size
    storage, storage_bytes = storages.place(value) if storages else (None, None)
    return TensorInfo(
        shape=shape,
        dtype=str(value.dtype).removeprefix("torch."),
        stride=tuple(_size(size) for size in value.stride()) if strided else None,
        device=str(value.device),
        size_bytes=size_bytes,
        storage=storage,
        storage_bytes=storage_bytes,
        requires_grad=value.requires_grad,
    )


def _size(size: Any) -> int | str:
    if type(size) is int:
        return size
    # A symbol that a guard has since made a number is one.
    known = size.node.maybe_as_int()
    return _printed(size.node.expr) if known is None else int(known)


@functools.lru_cache(maxsize=4096)
def _printed(expression: Any) -> str:
    """A graph has few symbolic sizes, and each of them many times."""
    return str(expression)


def frame_of_trace(trace: str) -> Frame | None:
    """The user's line in the stack trace of a node; None where it has none."""
    return _place(trace, []).frame


def _place(trace: str, stacks: list[tuple[Frame, ...]]) -> _TracePlace:
    """The user's line in a stack trace: the innermost that is not torch's own. And who called."""
    frames = [
        Frame(file, int(line), plain_function_name(function), source=source, origin=origin(file))
        for file, line, function, source in _STACK_LINE.findall(trace)
    ]
    own = tuple(frame for frame in frames if frame.origin != "torch")
    if len(own) < 2:
        return _TracePlace(own[0] if own else next(iter(frames), None), None)
    stacks.append(own)
    return _TracePlace(own[-1], len(stacks) - 1)
