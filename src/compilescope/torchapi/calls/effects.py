"""Which nodes of a graph may not move to a device, and which must keep their order.

Edges of a graph say only who needs whose result. They do not say that one random number is drawn
before another, or that a tensor is read before it is written in place: that is found here. Where
the operators behind a node are unknown, the node is taken to write.
"""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import torch
from torch.fx import GraphModule
from torch.fx import Node as FxNode

from compilescope.model.graph import Call, Graph, Node
from compilescope.torchapi.calls.operators import (
    find_overload,
    is_random,
    writes,
    written_arguments,
)

_WRITING_SYMBOLS = ("setitem", "delitem")
RANDOM = "randomness"
WRITES = "writes"
EFFECT = "side-effect"
SUBGRAPHS = "subgraphs"
WHOLE = "whole-module"
STRUCTURE = "structure"
ALIAS = "alias"
REGION = "region"
_ORDERED = (RANDOM, WRITES, EFFECT)


class NodeEffect(NamedTuple):
    """Why a node stays where it is."""

    rule: str
    words: str


_UNKNOWN = NodeEffect(WRITES, "its operators are unknown: it may modify its inputs")


class Effects(NamedTuple):
    """Of a graph."""

    kept: dict[str, NodeEffect]
    ordered: list[str]
    """Nodes that must run in this order, whoever needs whom."""


def find_effects(module: GraphModule, graph: Graph, *, random_is_free: bool) -> Effects:
    """`graph` is the module's portable graph, with its calls. `random_is_free`: the caller does
    not ask for the numbers that the host's generator would have given."""
    nodes = {node.name: node for node in graph.nodes}
    kept: dict[str, NodeEffect] = {}
    written: dict[int | None, str] = {}
    for live in module.graph.nodes:
        if not live.op.startswith("call_"):
            continue
        node = nodes[live.name]
        effect = _own_effect(live, node, random_is_free)
        if effect is None:
            continue
        kept[live.name] = effect
        if effect.rule == WRITES:
            for other in _written(live):
                for tensor in nodes[other.name].outputs:
                    written.setdefault(tensor.storage, live.name)
    if written:
        _keep_what_touches(graph, nodes, written, kept)
    region = next((e for e in kept.values() if e.rule == REGION), None)
    if region is not None:
        # It concerns all that runs within it: nothing may go in or out.
        every = [node.name for node in graph.nodes if node.op.startswith("call_")]
        return Effects({name: kept.get(name, region) for name in every}, every)
    ordered = [name for name in nodes if name in kept and kept[name].rule in _ORDERED]
    return Effects(kept, ordered)


def find_input_views(graph: Graph) -> dict[str, NodeEffect]:
    """Nodes that look at an input's memory. Whoever compiled the graph may count on that: a copy
    from another device would not do. AOTAutograd makes such views itself, Dynamo does not."""
    inputs = {
        tensor.storage
        for node in graph.nodes
        if node.op in ("placeholder", "get_attr")
        for tensor in node.outputs
        if tensor.storage is not None
    }
    words = "a view of an input: it must share the input's memory"
    return {
        node.name: NodeEffect(ALIAS, words)
        for node in graph.nodes
        if node.op.startswith("call_") and any(t.storage in inputs for t in node.outputs)
    }


def _own_effect(live: FxNode, node: Node, random_is_free: bool) -> NodeEffect | None:
    if live.op == "call_module":
        return NodeEffect(WHOLE, "a module that the compiler did not inline")
    if isinstance(live.target, torch._ops.HigherOrderOperator):
        return NodeEffect(SUBGRAPHS, "a higher-order operator: it runs graphs of its own")
    calls = node.calls
    if calls is None:
        # Known to torch as a plain number's function, or nobody can tell what it does.
        return None if node.no_tensor and _is_plain(live) else _UNKNOWN
    if not calls and not node.outputs and not _is_plain(live):
        return NodeEffect(REGION, f"a region such as autocast begins or ends here ({node.target})")
    if any(_is_writer(call) for call in calls):
        return NodeEffect(WRITES, "it changes a tensor in place")
    if not random_is_free and any(is_random(call) for call in calls):
        return NodeEffect(RANDOM, "it draws from the host's random number generator")
    if not live.users:
        return NodeEffect(EFFECT, "its result is unused: it runs for its side effects")
    if _is_whole_structure(live):
        return NodeEffect(STRUCTURE, "it returns several values that are passed on as one")
    return None


def _is_writer(call: Call) -> bool:
    # An operator of a library that is not loaded here may do anything.
    return find_overload(call.op) is None or bool(writes(call.op))


def _is_plain(live: FxNode) -> bool:
    home = getattr(live.target, "__module__", "") or ""
    if isinstance(live.target, torch._ops.OpOverload):
        return True
    if home not in ("_operator", "math", "builtins", "torch"):
        return bool(live.op == "call_method")
    return not _looks_writing(live)


def _looks_writing(live: FxNode) -> bool:
    return getattr(live.target, "__name__", "") in _WRITING_SYMBOLS


def _is_whole_structure(live: FxNode) -> bool:
    value = live.meta.get("val", live.meta.get("example_value"))
    if not isinstance(value, (tuple, list, dict)):
        return False
    return any(user.target is not operator.getitem for user in live.users)


def _written(live: FxNode) -> list[FxNode]:
    """The nodes whose memory it may change."""
    if isinstance(live.target, torch._ops.OpOverload):
        names = [argument.name for argument in live.target._schema.arguments]
        given: list[Any] = []
        for number in written_arguments(live.target):
            positional = live.args[number] if number < len(live.args) else None
            given.append(live.kwargs.get(names[number], positional))
        return _nodes_in(given)
    name = live.target if isinstance(live.target, str) else getattr(live.target, "__name__", "")
    own = str(name)
    in_place = own.endswith("_") and not own.endswith("__")
    if (in_place or own in _WRITING_SYMBOLS or own in _IN_PLACE_SYMBOLS) and live.args:
        return _nodes_in([live.args[0], live.kwargs.get("out")])
    return list(live.all_input_nodes)


_IN_PLACE_SYMBOLS = frozenset(name for name in dir(operator) if name.startswith("i")) - {
    "index", "indexOf", "inv", "invert", "is_", "is_not", "itemgetter", "is_none", "is_not_none",
}  # fmt: skip


def _nodes_in(given: list[Any]) -> list[FxNode]:
    found: list[FxNode] = []
    torch.fx.node.map_arg(given, lambda node: found.append(node))
    return found


def _keep_what_touches(
    graph: Graph,
    nodes: dict[str, Node],
    written: dict[int | None, str],
    kept: dict[str, NodeEffect],
) -> None:
    """Whoever reads or looks at memory that is written somewhere stays in line with the writer.

    A storage that is not known (None) may be any other.
    """
    for node in graph.nodes:
        if not node.op.startswith("call_") or node.name in kept:
            continue
        around = [*node.outputs, *(t for name in node.inputs for t in nodes[name].outputs)]
        if None in written and around:
            writers = {written[None]}
        else:
            writers = {written[t.storage] for t in around if t.storage in written}
        if writers:
            words = f"it shares memory with what {sorted(writers)[0]} modifies"
            kept[node.name] = NodeEffect(WRITES, words)
