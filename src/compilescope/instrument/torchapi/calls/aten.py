"""The ATen operators behind each node of a graph, found by running the node without data.

A Dynamo graph says `torch.nn.functional.linear`; a device is told of `aten.addmm`. The node is run
as it stands, in the mode in which the graph would run it (grad mode and autocast, as the graph's
own nodes switch them), and every operator that is dispatched below autograd is noted, as a call of
the portable graph. Calls that agree in what their operators depend on are run once. Nothing is
computed, and torch's shape environment is only read.

Nodes under `torch.vmap` and `torch.func` transforms only make sense one after the other: a node
there works on a value that a transform has wrapped, and which operator it leads to depends on the
transform. So such a region is run whole on fake tensors, from where the first transform begins to
where it ends.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.calls.rehearsal import (
    DispatchedOperator,
    OperatorNotes,
    TrialSizes,
    Unclear,
    fake_cast,
    quietly,
    rehearse,
)
from compilescope.instrument.torchapi.graphs.fx import tensor_info
from compilescope.record.graph import Call, Graph, TensorInfo


def is_operator(func: Any) -> bool:
    """What is asked of a tensor itself (its device, its symbolic sizes) is none."""
    return func.namespace != "prim" and not func._opname.startswith("sym_")


def own_call(node: Node) -> tuple[Call, ...]:
    """A node of an ATen graph is its own call."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), _noted)
    result = node.meta.get("val", node.meta.get("example_value"))
    func: Any = node.target
    if not is_operator(func):
        return ()
    constants = {
        name: _plain(value) for name, value in _arguments(func, args, kwargs) if not _has(value)
    }
    given = tuple(tensor_info(leaf) for leaf in _leaves((args, kwargs)))
    return (Call(str(func), given, tuple(map(tensor_info, _leaves(result))), constants),)


def noted_calls(
    first: Sequence[DispatchedOperator], second: Sequence[DispatchedOperator], sizes: TrialSizes
) -> tuple[Call, ...] | None:
    """None where another size leads to other operators: then nobody can tell which it will be."""
    first, second = ([s for s in seen if is_operator(s.op)] for seen in (first, second))
    if [seen.op for seen in first] != [seen.op for seen in second]:
        return None
    return tuple(_call(one, two, sizes) for one, two in zip(first, second, strict=True))


def _call(one: DispatchedOperator, two: DispatchedOperator, sizes: TrialSizes) -> Call:
    constants = {}
    others = _arguments(two.op, two.args, two.kwargs)
    for (name, value), (_, other) in zip(
        _arguments(one.op, one.args, one.kwargs), others, strict=True
    ):
        if not _has(value):
            constants[name] = _plain(value, other, sizes)
    return Call(
        str(one.op),
        _infos((one.args, one.kwargs), (two.args, two.kwargs), sizes),
        _infos(one.result, two.result, sizes),
        constants,
    )


def _arguments(func: Any, args: Any, kwargs: Any) -> list[tuple[str, Any]]:
    """By the names of the operator's schema, with what it takes by default."""
    return [
        (
            argument.name,
            args[number]
            if number < len(args)
            else kwargs.get(argument.name, argument.default_value),
        )
        for number, argument in enumerate(func._schema.arguments)
    ]


def _infos(one: Any, two: Any, sizes: TrialSizes) -> tuple[TensorInfo, ...]:
    if one is two:
        return tuple(_info(leaf, leaf, sizes) for leaf in _leaves(one))
    return tuple(
        _info(first, second, sizes)
        for first, second in zip(_leaves(one), _leaves(two), strict=False)
    )


def _info(one: torch.Tensor, two: torch.Tensor, sizes: TrialSizes) -> TensorInfo:
    shape = tuple(map(sizes.shown, one.shape, two.shape))
    size_bytes: int | None = one.element_size()
    for size in shape:
        size_bytes = None if size_bytes is None or isinstance(size, str) else size_bytes * size
    return TensorInfo(
        shape=shape,
        dtype=_dtype(one.dtype),
        stride=tuple(map(sizes.shown, one.stride(), two.stride())),
        device=str(one.device),
        size_bytes=size_bytes,
    )


@functools.lru_cache(maxsize=64)
def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _plain(value: Any, other: Any = None, sizes: TrialSizes | None = None) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) is float:
        return value
    if type(value) is int:
        return sizes.shown(value, other) if sizes is not None and type(other) is int else value
    if isinstance(value, (list, tuple)):
        others = other if isinstance(other, (list, tuple)) else [None] * len(value)
        return [_plain(item, twin, sizes) for item, twin in zip(value, others, strict=False)]
    return str(value).removeprefix("torch.")


def _leaves(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _has(value: Any) -> bool:
    """Does it hold tensors?"""
    if isinstance(value, (list, tuple)):
        return any(map(_has, value))
    return isinstance(value, torch.Tensor)


def _noted(node: Node) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))


_HOMES = ("torch._functorch", "torch._C._functorch")


def is_transform(node: Node) -> bool:
    home = getattr(node.target, "__module__", "") or ""
    return node.op == "call_function" and home.startswith(_HOMES)


def transformed_regions(nodes: Iterable[Node]) -> list[list[Node]]:
    regions: list[list[Node]] = []
    depth = 0
    for node in nodes:
        name = getattr(node.target, "__name__", "") if is_transform(node) else ""
        if name.endswith("_increment_nesting"):
            depth += 1
            if depth == 1:
                regions.append([])
        if depth:
            regions[-1].append(node)
        if name.endswith("_decrement_nesting"):
            depth -= 1
    return regions


def rehearse_region(
    nodes: list[Node],
    module: GraphModule,
    value_of: Callable[[Node], Any],
    sizes: TrialSizes,
    at: int,
) -> list[list[DispatchedOperator]]:
    """The operators of each node."""
    cast = fake_cast(sizes, at)
    inside = set(nodes)
    # What comes from outside must be made outside: else a transform takes it for its own.
    made: dict[Node, Any] = {
        source: cast.of(value_of(source))
        for node in nodes
        for source in node.all_input_nodes
        if source not in inside
    }
    seen: list[list[DispatchedOperator]] = []
    interpreter = torch.fx.Interpreter(module)
    with _layers_kept(), quietly(cast.fake):
        for node in nodes:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), made.__getitem__)
            with OperatorNotes(lambda: None, cast.fake) as noting:
                try:
                    if node.op == "get_attr":
                        made[node] = cast.of(interpreter.fetch_attr(str(node.target)))
                    else:
                        run = getattr(interpreter, node.op)
                        made[node] = run(node.target, args, kwargs)
                except Exception as error:  # The border to torch: it may refuse for any reason.
                    let_through(error)
                    raise Unclear(f"{type(error).__name__}: {error}") from None
            seen.append(noting.seen)
    return seen


@contextlib.contextmanager
def _layers_kept() -> Iterator[None]:
    """A transform that was entered and not left would hold for the rest of the program."""
    functorch = torch._C._functorch
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        if functorch.get_dynamic_layer_stack_depth() > depth:
            functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)


def is_dynamic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        strides: Sequence[Any] = value.stride() if value.layout is torch.strided else ()
        return any(type(size) is not int for size in (*value.shape, *strides))
    if isinstance(value, (list, tuple)):
        return any(map(is_dynamic, value))
    if isinstance(value, dict):
        return any(map(is_dynamic, value.values()))
    if isinstance(value, slice):
        return is_dynamic((value.start, value.stop, value.step))
    return isinstance(value, torch.SymInt)


def part_key(part: Any) -> Any:
    if isinstance(part, torch.Tensor):
        strides = part.stride() if part.layout is torch.strided else ()
        shape = tuple(map(_size_key, part.shape)), tuple(map(_size_key, strides))
        return shape, part.dtype, part.device, part.requires_grad, type(part)
    if isinstance(part, dict):
        return tuple((name, part_key(value)) for name, value in part.items())
    if isinstance(part, (list, tuple)):
        return type(part), tuple(map(part_key, part))
    return type(part), str(part)


def _size_key(size: Any) -> Any:
    return size if type(size) is int else size.node.expr


_STATE = ("torch.random", "torch._C._autograd", "torch._C._profiler")
"""Functions there change the state of the program and compute nothing."""


class TracedModes:
    """The modes that hold at a node. At the end all is as it was before."""

    def __init__(self) -> None:
        self._undo = contextlib.ExitStack()
        self._grad = torch.is_grad_enabled()
        self._entered: list[tuple[Node, Any]] = []
        self._casting: dict[tuple[str, Any], Any] = {}

    def __enter__(self) -> TracedModes:
        # The program's own run will warn of what there is to warn of.
        self._undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # Inference mode hides what composite operators are made of. A device's kernels see it.
        self._undo.enter_context(torch.inference_mode(False))
        self._undo.enter_context(torch.set_grad_enabled(self._grad))
        # Weights that autocast has cast once would be found cast by the next node.
        caching = torch.is_autocast_cache_enabled()
        self._undo.callback(torch.set_autocast_cache_enabled, caching)
        torch.set_autocast_cache_enabled(False)
        return self

    def __exit__(self, *_: object) -> None:
        while self._entered:
            self._leave()
        self._undo.close()

    @property
    def key(self) -> tuple[Any, ...]:
        """Nodes that agree in it run in the same modes."""
        regions = (str(entered.args) for entered, _ in self._entered)
        return self._grad, *regions, *self._casting.items()

    def follow(self, node: Node) -> bool:
        """Do what a node does to the modes. True where that is all that it does."""
        target: Any = node.target
        name, home = getattr(target, "__name__", ""), getattr(target, "__module__", "") or ""
        if name == "_set_grad_enabled":
            self._grad = bool(node.args[0])
            torch.set_grad_enabled(self._grad)
        elif name == "_enter_inference_mode":
            region = torch.set_grad_enabled(not node.args[0])
            region.__enter__()
            self._entered.append((node, region))
        elif name == "_enter_autocast":
            self._entered.append((node, target(*node.args)))
        elif name in ("_exit_inference_mode", "_exit_autocast"):
            if any(entered is node.args[0] for entered, _ in self._entered):
                self._leave(node.args[0])
        elif name in ("set_autocast_enabled", "set_autocast_dtype") and len(node.args) == 2:
            self._set_autocast(name, *node.args)
        else:
            return "autocast" in name or home.startswith(_STATE)
        return True

    def _set_autocast(self, name: str, device: Any, value: Any) -> None:
        """An autocast region whose beginning and end were traced as the functions they are."""
        ask = torch.is_autocast_enabled if name.endswith("enabled") else torch.get_autocast_dtype
        self._undo.callback(getattr(torch, name), device, ask(device))
        getattr(torch, name)(device, value)
        self._casting = {**self._casting, (name, device): value}

    def _leave(self, wanted: Any = None) -> None:
        """Out of the innermost region, or out of all up to the wanted one."""
        entered, region = self._entered.pop()
        region.__exit__(None, None, None)
        if wanted is not None and entered is not wanted:
            self._leave(wanted)


Calls = tuple[Call, ...] | None

_CHANGES = frozenset(
    {"setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "iand", "ior", "ixor"}
)
_DETACH = torch.ops.aten.detach.default
_SILENT = ("placeholder", "output", "get_attr")
_OWN_WORK = frozenset({"flex_attention", "flex_attention_backward"})
"""Higher-order operators that compute something beside running the graphs that they are given."""


def with_calls(graph: Graph, module: GraphModule) -> Graph:
    """The portable graph of a module, each node with its operators, and so the graphs within it."""
    with _Walk() as walk:
        walk.follow(module)
        return walk.filled(graph, module)


class _Walk:
    """Goes through a graph in order, and follows what it does to grad mode and autocast."""

    def __init__(self) -> None:
        self._modes = TracedModes()
        self._sizes = TrialSizes()
        self._known: dict[Any, Calls] = {}
        self._own: dict[GraphModule, dict[str, Calls]] = {}
        """Graph -> node -> its operators without those of graphs that it is given."""

    def __enter__(self) -> _Walk:
        self._modes.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._modes.__exit__()

    def follow(self, module: GraphModule) -> None:
        regions = {region[0]: region for region in transformed_regions(module.graph.nodes)}
        found = self._own[module] = {}
        for node in module.graph.nodes:
            if node in regions:
                found.update(self._region(regions[node], module))
            elif node.name not in found:
                found[node.name] = self.calls(node, module)

    def filled(self, graph: Graph, module: GraphModule) -> Graph:
        own = self._own[module]
        live = {node.name: node for node in module.graph.nodes}
        return msgspec.structs.replace(
            graph,
            nodes=tuple(
                msgspec.structs.replace(
                    node,
                    calls=own.get(node.name),
                    graphs=tuple(
                        self.filled(inner, part) if part in self._own else inner
                        for inner, part in zip(
                            node.graphs, _inner_graphs(live[node.name], module), strict=False
                        )
                    ),
                )
                for node in graph.nodes
            ),
        )

    def calls(self, node: Node, module: GraphModule) -> Calls:
        if node.op in _SILENT:
            return ()
        if node.op == "call_function":
            if isinstance(node.target, torch._ops.OpOverload):
                return own_call(node)
            if isinstance(node.target, torch._ops.HigherOrderOperator):
                return self._higher_order(node, module)
            if self._modes.follow(node) or is_transform(node):
                return ()
        try:
            return self._rehearsed(node, module)
        except Unclear:
            return None

    def _rehearsed(self, node: Node, module: GraphModule) -> Calls:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), _value)
        function, args = _function(node, args, module)
        owner = id(module) if node.op == "call_module" else None
        key = (node.op, node.target, owner, self._modes.key, part_key(args), part_key(kwargs))
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._run(function, args, kwargs, node)
        return self._known[key]

    def _run(self, function: Callable[..., Any], args: Any, kwargs: Any, node: Node) -> Calls:
        expected = node.meta.get("example_value", node.meta.get("val"))
        go = functools.partial(
            rehearse,
            function,
            args,
            kwargs,
            sizes=self._sizes,
            expected=expected,
            in_place=_in_place(node),
        )
        first = go(at=0)
        second = first
        if is_dynamic((args, kwargs, expected)):
            try:
                second = go(at=1)
            except Unclear:
                if not self._sizes.hold_to_guards():
                    raise
                first, second = go(at=0), go(at=1)
        if "detach" not in str(node.target):
            first, second = _visible(first), _visible(second)
        return noted_calls(first, second, self._sizes)

    def _region(self, nodes: list[Node], module: GraphModule) -> dict[str, Calls]:
        try:
            first, second = (
                rehearse_region(nodes, module, _value, self._sizes, at) for at in (0, 1)
            )
        except Unclear:
            return dict.fromkeys((node.name for node in nodes), None)
        return {
            node.name: noted_calls(_visible(one), _visible(two), self._sizes)
            for node, one, two in zip(nodes, first, second, strict=True)
        }

    def _higher_order(self, node: Node, module: GraphModule) -> Calls:
        name = str(getattr(node.target, "__name__", node.target))
        inner = _inner_graphs(node, module)
        for part in inner:
            self.follow(part)
        return (Call(f"higher_order.{name}"),) if not inner or name in _OWN_WORK else ()


def _in_place(node: Node) -> bool:
    """Does it look as if it changed its input? A wrong guess only costs time."""
    name = str(getattr(node.target, "__name__", node.target))
    changes = name.endswith("_") and not name.endswith("__")
    return changes or name in _CHANGES or node.kwargs.get("inplace") is True


def _visible(seen: list[DispatchedOperator]) -> list[DispatchedOperator]:
    """Without autograd's own: it detaches what it saves for the backward pass."""
    return [each for each in seen if each.op is not _DETACH]


def _function(node: Node, args: Any, module: GraphModule) -> tuple[Callable[..., Any], Any]:
    """What a node runs, and with what. A module's parameters are arguments too."""
    if node.op == "call_method":
        return functools.partial(_call_method, str(node.target)), args
    if node.op == "call_module":
        owner = module.get_submodule(str(node.target))
        held = {**dict(owner.named_parameters()), **dict(owner.named_buffers())}
        return functools.partial(_call_module, owner), (held, *args)
    return node.target, args


def _call_method(name: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(subject, name)(*args, **kwargs)


def _call_module(owner: torch.nn.Module, held: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.func.functional_call(owner, held, args, kwargs)


def _value(node: Node) -> Any:
    for key in ("example_value", "val"):
        if key in node.meta:
            return node.meta[key]
    raise Unclear(f"the value of {node.name} was not recorded")


def _inner_graphs(node: Node, module: GraphModule) -> list[GraphModule]:
    """The graphs that a higher-order operator such as `cond` or a checkpoint is given."""
    names = [str(arg.target) for arg in node.all_input_nodes if arg.op == "get_attr"]
    parts: list[Any] = []
    for name in names:
        with contextlib.suppress(AttributeError):
            parts.append(operator.attrgetter(name)(module))
    return [part for part in parts if isinstance(part, GraphModule)]
