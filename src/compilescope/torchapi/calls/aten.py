"""The ATen operators behind each node of a graph, found by running the node without data.

A Dynamo graph says `torch.nn.functional.linear`; a device is told of `aten.addmm`. The node is run
as it stands, in the mode in which the graph would run it, and every operator that is dispatched
below autograd is noted. Nothing is computed, and torch's shape environment is only read.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable
from typing import Any

import msgspec
import torch
from torch.fx import GraphModule, Node

from compilescope.model.graph import Call, Graph
from compilescope.torchapi.calls.keys import is_dynamic, part_key
from compilescope.torchapi.calls.noted import noted_calls, own_call
from compilescope.torchapi.calls.rehearsal import Seen, rehearse
from compilescope.torchapi.calls.traced_modes import TracedModes
from compilescope.torchapi.calls.transformed import (
    is_transform,
    rehearse_region,
    transformed_regions,
)
from compilescope.torchapi.calls.trial_sizes import TrialSizes, Unclear

Calls = tuple[Call, ...] | None

_CHANGES = frozenset(
    {"setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "iand", "ior", "ixor"}
)
_DETACH = torch.ops.aten.detach.default
_SILENT = ("placeholder", "output", "get_attr")
_FORWARD_ONLY = frozenset({"autograd_function_apply"})
"""Higher-order operators whose first graph alone is run: the others are for the backward pass."""
_OWN_WORK = frozenset({"flex_attention", "flex_attention_backward"})
"""Those that compute something beside running the graphs that they are given."""


def aten_calls(module: GraphModule) -> dict[str, Calls]:
    """Node -> its operators; None where running it did not tell.

    A node that is given graphs, such as a `cond`, has the operators of all of them.
    """
    with _Walk() as walk:
        return walk.all_calls(module)


def with_calls(graph: Graph, module: GraphModule) -> Graph:
    """The portable graph of a module, each node with its operators, and so the graphs within it."""
    with _Walk() as walk:
        walk.all_calls(module)
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

    def all_calls(self, module: GraphModule) -> dict[str, Calls]:
        regions = {region[0]: region for region in transformed_regions(module.graph.nodes)}
        found: dict[str, Calls] = {}
        own = self._own[module] = {}
        for node in module.graph.nodes:
            if node in regions:
                found.update(self._region(regions[node], module))
            elif node.name not in found:
                found[node.name] = self.calls(node, module)
        self._own[module] = {**found, **own}
        return found

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
        own = (Call(f"higher_order.{name}"),) if not inner or name in _OWN_WORK else ()
        self._own[module][node.name] = own
        found, unknown = list(own), False
        for number, part in enumerate(inner):
            for calls in self.all_calls(part).values():
                if number and name in _FORWARD_ONLY:
                    continue
                unknown = unknown or calls is None
                found += calls or ()
        return None if unknown else tuple(found)


def _in_place(node: Node) -> bool:
    """Does it look as if it changed its input? A wrong guess only costs time."""
    name = str(getattr(node.target, "__name__", node.target))
    changes = name.endswith("_") and not name.endswith("__")
    return changes or name in _CHANGES or node.kwargs.get("inplace") is True


def _visible(seen: list[Seen]) -> list[Seen]:
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
