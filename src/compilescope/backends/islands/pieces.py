"""Takes a graph apart: islands that a device takes (torch's CapabilityBasedPartitioner), and the
host's stretches between them, as modules of their own.

Invariant: the pieces, run in the order of the outer graph, compute what the graph computed. Random
numbers and writes keep their order; what has none is free to move.

torch's takes time with the cube of the nodes (57 s for 1,500 nodes in 150 islands, torch 2.13), so
it is given a sketch in which neighbours that can be merged without any doubt are one node already.
A graph whose sketch is still large is cut by level: in linear time, and with no more islands.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.fx
from torch.fx import Graph as FxGraph
from torch.fx import GraphModule
from torch.fx import Node as FxNode
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from compilescope.backends.islands.support import (
    NodeJudgement,
    NodeRefusal,
    Unsure,
    island_graph,
    island_refusal,
)
from compilescope.instrument.torchapi.calls.operators import is_higher_order, is_view
from compilescope.instrument.torchapi.graphs.values import symbol_of, symbols_in

_OUTSIDE = ("placeholder", "get_attr", "output")


class Piece(NamedTuple):
    """A part of a graph as a module of its own."""

    name: str
    module: GraphModule
    nodes: list[FxNode]
    inputs: list[FxNode]
    outputs: list[FxNode]
    """Nodes of the graph that it was taken from."""

    @property
    def examples(self) -> list[Any]:
        """What it would be called with, without data."""
        return [value_of(node) for node in self.inputs]


class Assembly(NamedTuple):
    """A graph taken apart: the outer graph calls the pieces."""

    module: GraphModule
    islands: list[Piece]
    host: list[Piece]
    """Only where they were asked for: else the outer graph has the host's nodes itself."""


def value_of(node: FxNode) -> Any:
    """What the compiler noted of a node's result."""
    return node.meta.get("val", node.meta.get("example_value"))


def needs_of(module: GraphModule, ordered: Sequence[str]) -> dict[str, list[str]]:
    """Every node but inputs and output -> what must run before it."""
    before = dict(zip(ordered[1:], ordered, strict=False))
    needs: dict[str, list[str]] = {}
    for node in module.graph.nodes:
        if node.op in _OUTSIDE:
            continue
        own = [other.name for other in node.all_input_nodes if other.op not in _OUTSIDE]
        if node.name in before:
            own.append(before[node.name])
        needs[node.name] = list(dict.fromkeys(own))
    return needs


def take_apart(
    module: GraphModule,
    islands: Sequence[Sequence[str]],
    ordered: Sequence[str],
    *,
    host_pieces: bool,
) -> Assembly:
    """With `host_pieces` the host's stretches between islands become modules as well."""
    return _Cutter(module, islands, ordered, host_pieces).cut()


class _Cutter:
    """Writes the outer graph."""

    def __init__(
        self,
        module: GraphModule,
        islands: Sequence[Sequence[str]],
        ordered: Sequence[str],
        host_pieces: bool,
    ) -> None:
        self._module = module
        self._nodes = {node.name: node for node in module.graph.nodes}
        self._islands = {f"island_{number}": list(names) for number, names in enumerate(islands)}
        self._units = _units(module, self._islands)
        self._order = _unit_order(needs_of(module, ordered), self._units)
        self._host_pieces = host_pieces
        self._ordered = frozenset(ordered)
        self._graph = FxGraph()
        self._new: dict[FxNode, FxNode] = {}
        self._attributes: dict[str, Any] = {}
        self._symbols = _symbol_nodes(module)
        self._done: list[Piece] = []
        self._waiting: list[FxNode] = []
        """Host nodes that will be one piece."""

    def cut(self) -> Assembly:
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                self._copy(node)
        for unit in self._order:
            nodes = [self._nodes[name] for name in self._units[unit]]
            if unit in self._islands:
                self._flush()
                self._call(unit, nodes)
            else:
                self._host(nodes)
        self._flush()
        [output] = [node for node in self._module.graph.nodes if node.op == "output"]
        self._bring(output.all_input_nodes)
        self._copy(output)
        outer = GraphModule(self._attributes, self._graph, "Partitioned")
        inner = {piece.name for piece in self._done if piece.name in self._islands}
        return Assembly(
            outer,
            [piece for piece in self._done if piece.name in inner],
            [piece for piece in self._done if piece.name not in inner],
        )

    def _host(self, nodes: list[FxNode]) -> None:
        first = nodes[0]
        # Where order counts, nodes stay one by one in the outer graph.
        if self._host_pieces and first.name not in self._ordered and _is_compilable(first):
            self._waiting += nodes
            return
        if any(other in self._waiting for other in first.all_input_nodes):
            self._flush()
        self._bring(first.all_input_nodes)
        for node in nodes:
            self._copy(node)

    def _flush(self) -> None:
        if self._waiting:
            number = sum(piece.name not in self._islands for piece in self._done)
            waiting, self._waiting = self._waiting, []
            self._call(f"host_{number}", waiting)

    def _call(self, name: str, nodes: list[FxNode]) -> None:
        piece = _extract(name, nodes, self._symbols)
        self._done.append(piece)
        self._attributes[name] = piece.module
        self._bring(piece.inputs)
        called = self._graph.call_module(name, tuple(self._new[node] for node in piece.inputs))
        for number, node in enumerate(piece.outputs):
            picked = self._graph.call_function(operator.getitem, (called, number))
            picked.meta = dict(node.meta)
            self._new[node] = picked

    def _bring(self, nodes: Sequence[FxNode]) -> None:
        """Constants are put in where they are first needed."""
        for node in nodes:
            if node.op == "get_attr" and node not in self._new:
                self._copy(node)

    def _copy(self, node: FxNode) -> None:
        if node.op in ("get_attr", "call_module"):
            self._attributes[str(node.target)] = _attribute(self._module, str(node.target))
        self._new[node] = self._graph.node_copy(node, self._new.__getitem__)


def _units(module: GraphModule, islands: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What runs in one go: islands, and nodes with the picking of their results."""
    inside = {name for names in islands.values() for name in names}
    units: dict[str, list[str]] = {}
    for node in module.graph.nodes:
        if node.op in _OUTSIDE or node.name in inside:
            continue
        maker = _maker(node)
        units.setdefault(maker.name if maker is not None else node.name, []).append(node.name)
    # The host goes as far as it can before an island runs: its stretches are the longer.
    return {**units, **islands}


def _maker(node: FxNode) -> FxNode | None:
    """The node of whose results this one is picked, where it does only that."""
    if node.target is not operator.getitem or not isinstance(node.args[0], FxNode):
        return None
    maker = node.args[0]
    is_several = isinstance(value_of(maker), (tuple, list))
    return (_maker(maker) or maker) if is_several and maker.op not in _OUTSIDE else None


def _unit_order(needs: Mapping[str, Sequence[str]], units: Mapping[str, list[str]]) -> list[str]:
    unit = {name: own for own, names in units.items() for name in names}
    before: dict[str, dict[str, None]] = {own: {} for own in units}
    for name, needed in needs.items():
        own = unit[name]
        before[own].update((unit[o], None) for o in needed if unit[o] != own)
    return run_order(before)


def _is_compilable(node: FxNode) -> bool:
    """Can a compiler take it in with others? Sizes, and graphs within graphs, stay outside."""
    if node.op not in ("call_function", "call_method") or is_higher_order(node.target):
        return False
    return any(isinstance(leaf, torch.Tensor) for leaf in _leaves(value_of(node)))


def _leaves(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _symbol_nodes(module: GraphModule) -> dict[str, FxNode]:
    """Symbol -> the input that is its value."""
    found: dict[str, FxNode] = {}
    for node in module.graph.nodes:
        symbol = symbol_of(value_of(node)) if node.op == "placeholder" else None
        if symbol is not None:
            found.setdefault(symbol, node)
    return found


def _extract(name: str, nodes: list[FxNode], symbols: Mapping[str, FxNode]) -> Piece:
    inside = set(nodes)
    graph = FxGraph()
    inputs = list(
        dict.fromkeys(o for node in nodes for o in node.all_input_nodes if o not in inside)
    )
    # As in graphs of torch's own, every symbol is an input: compilers look for them there.
    needed = set[str]().union(*(symbols_in(value_of(node)) for node in (*inputs, *nodes)))
    given = {symbol_of(value_of(node)) for node in inputs}
    inputs += [node for symbol, node in symbols.items() if symbol in needed - given]
    new: dict[FxNode, FxNode] = {}
    for node in inputs:
        new[node] = graph.placeholder(node.name)
        new[node].meta = {k: v for k, v in node.meta.items() if k in ("val", "example_value")}
    for node in nodes:
        new[node] = graph.node_copy(node, new.__getitem__)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    graph.output(tuple(new[node] for node in outputs))
    module = GraphModule(torch.nn.Module(), graph, name)
    return Piece(name, module, nodes, inputs, outputs)


def _attribute(module: GraphModule, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


# Plans which nodes of a graph become islands: the parts that a device takes and runs.
#
# Every other node stays on the host, with a reason. No island needs another by way of the host and
# back, so each can be run as one call.


class IslandPlan(NamedTuple):
    """Which nodes go to the device."""

    islands: list[list[str]]
    """In order of execution."""
    host: dict[str, NodeRefusal]
    """Every other op, and why."""
    cut_by: Literal["torch", "levels"]


def plan_islands(
    module: GraphModule,
    judgement: NodeJudgement,
    ordered: Sequence[str],
    *,
    min_ops: int,
    unsure: Unsure,
) -> IslandPlan:
    """Islands of what the device takes, without those that are too small or refused as a whole."""
    taken = judgement.taken()
    device = {name for name, refusal in taken.items() if refusal is None}
    host = {name: refusal for name, refusal in taken.items() if refusal is not None}
    needs = needs_of(module, ordered)
    proposed, cut_by = propose_islands(needs, device)
    islands = []
    for whole in proposed:
        names, views = _without_views(module, judgement, whole)
        host.update(dict.fromkeys(views, _VIEW))
        refusal = _too_small(judgement, names, min_ops)
        refusal = refusal or _refused_whole(module, judgement, names, unsure)
        if refusal is None:
            islands.append(names)
        else:
            host.update(dict.fromkeys(names, refusal))
    return IslandPlan(islands, host, cut_by)


_VIEW = NodeRefusal(rule="view", found="a view of host memory stays on the host")


def _without_views(
    module: GraphModule, judgement: NodeJudgement, names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """An island without views of the host's tensors that the host needs: none crosses for them."""
    inside, views = set(names), []
    for node in module.graph.nodes:
        if node.name not in inside or not is_view_node(judgement.nodes[node.name]):
            continue
        from_inside = any(other.name in inside for other in node.all_input_nodes)
        if not from_inside and _is_wanted(node, inside):
            picks = [user.name for user in node.users if not judgement.is_valued(user.name)]
            views += [name for name in (node.name, *picks) if name in inside]
            inside.difference_update(views)
    return [name for name in names if name in inside], views


def _is_wanted(node: Any, inside: set[str]) -> bool:
    """Outside of the island, by itself or as one of several results?"""
    return any(
        user.name not in inside or (user.target is operator.getitem and _is_wanted(user, inside))
        for user in node.users
    )


def _too_small(judgement: NodeJudgement, names: Sequence[str], min_ops: int) -> NodeRefusal | None:
    """Views alone are no work: they do not make an island."""
    working = [
        name
        for name in names
        if judgement.is_counted(name) and not is_view_node(judgement.nodes[name])
    ]
    if len(working) >= min_ops:
        return None
    found = f"an island of {len(working)} compute op{'' if len(working) == 1 else 's'}"
    return NodeRefusal(rule="small-island", found=found, allowed=f"at least {min_ops}")


def is_view_node(node: Any) -> bool:
    """Does it only look elsewhere at memory that is there?"""
    return bool(node.calls) and all(is_view(call.op) for call in node.calls)


def _refused_whole(
    module: GraphModule, judgement: NodeJudgement, names: Sequence[str], unsure: Unsure
) -> NodeRefusal | None:
    if not judgement.of_graphs:
        return None
    inside = set(names)
    outputs = [
        node.name
        for node in module.graph.nodes
        if node.name in inside and any(user.name not in inside for user in node.users)
    ]
    graph = island_graph(judgement.graph, inside, outputs)
    breach = island_refusal(graph, judgement.of_graphs, unsure)
    if breach is None:
        return None
    return NodeRefusal(
        rule=breach.rule,
        found=f"its island: {breach.found}",
        allowed=breach.allowed,
        remedy=breach.remedy,
        severity="unknown" if breach.severity == "unknown" else "error",
    )


Inputs = Mapping[str, Sequence[str]]
"""Node -> the nodes that must run before it. Nodes stand in order of execution."""
Way = Literal["torch", "levels"]
_LARGEST_SKETCH = 300
"""Nodes of a sketch that torch's partitioner is given. Chosen: with the cube of their number 300
take some half a second, by the figure above."""


def propose_islands(
    inputs: Inputs, device: set[str], *, largest_sketch: int = _LARGEST_SKETCH
) -> tuple[list[list[str]], Way]:
    """Groups of the nodes in `device`; no two of them need one another, nor by way of others."""
    if not device:
        return [], "torch"
    levels = _levels(inputs, device)
    groups = _contracted(inputs, levels, device)
    members: dict[str, list[str]] = {}
    for name in inputs:
        members.setdefault(groups[name], []).append(name)
    sketch = _quotient(inputs, groups)
    supported = {group for group in sketch if group in device}
    if len(sketch) > largest_sketch:
        return _by_level(levels, device), "levels"
    proposed = _by_torch(sketch, supported)
    place = {name: number for number, name in enumerate(inputs)}
    islands = [
        sorted((name for group in part for name in members[group]), key=place.__getitem__)
        for part in proposed
    ]
    return sorted(islands, key=lambda island: place[island[0]]), "torch"


def _contracted(inputs: Inputs, levels: Mapping[str, int], device: set[str]) -> dict[str, str]:
    """Node -> the group it is in: neighbours on one side and one level are one.

    Nothing leads from a level back to it, so no way leads out of such a group and in again.
    """
    groups = {name: name for name in inputs}
    for name, needed in inputs.items():
        for other in needed:
            if levels[other] == levels[name] and (other in device) == (name in device):
                groups[_root(groups, other)] = _root(groups, name)
    return {name: _root(groups, name) for name in inputs}


def _root(groups: dict[str, str], name: str) -> str:
    while groups[name] != name:
        groups[name] = groups[groups[name]]
        name = groups[name]
    return name


def _quotient(inputs: Inputs, groups: Mapping[str, str]) -> dict[str, list[str]]:
    """The graph of the groups, in an order in which they can run."""
    before: dict[str, dict[str, None]] = {}
    for name, needed in inputs.items():
        own = before.setdefault(groups[name], {})
        own.update((groups[other], None) for other in needed if groups[other] != groups[name])
    return {name: list(before[name]) for name in run_order(before)}


def run_order(inputs: Mapping[str, Iterable[str]]) -> list[str]:
    """Names such that each comes after what it needs, otherwise in the order given."""
    place = {name: number for number, name in enumerate(inputs)}
    users: dict[str, list[str]] = {name: [] for name in inputs}
    waiting = {}
    for name, needed in inputs.items():
        waiting[name] = len(set(needed))
        for other in set(needed):
            users[other].append(name)
    ready = [(place[name], name) for name, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for user in users[name]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (place[user], user))
    if len(order) != len(place):
        raise ValueError("these nodes depend on each other in a cycle")
    return order


def _by_torch(sketch: Mapping[str, Sequence[str]], supported: set[str]) -> list[list[str]]:
    graph = torch.fx.Graph()
    drawn: dict[str, torch.fx.Node] = {}
    for number, (name, before) in enumerate(sketch.items()):
        args = tuple(drawn[other] for other in before)
        drawn[name] = graph.create_node("call_function", _sketched, args, name=f"n{number}")
    graph.output(())
    names = {node: name for name, node in drawn.items()}
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    partitioner = CapabilityBasedPartitioner(
        module,
        _Support({drawn[name] for name in supported}),
        allows_single_node_partition=True,
    )
    return [[names[node] for node in part.nodes] for part in partitioner.propose_partitions()]


def _sketched(*args: Any) -> Any:
    """Stands for a group of nodes in a sketch; never called."""


class _Support(OperatorSupportBase):  # type: ignore[misc]
    def __init__(self, supported: set[torch.fx.Node]) -> None:
        self._supported = supported

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node in self._supported


def _levels(inputs: Inputs, device: set[str]) -> dict[str, int]:
    """How often the side changes from device to host on the longest way to a node.

    In turns the host's level 0, the device's level 0, the host's level 1: no level needs a later
    one. No cut has fewer islands than there are levels.
    """
    levels: dict[str, int] = {}
    for name, needed in inputs.items():
        host = name not in device
        levels[name] = max(
            (levels[other] + (host and other in device) for other in needed), default=0
        )
    return levels


def _by_level(levels: Mapping[str, int], device: set[str]) -> list[list[str]]:
    islands: dict[int, list[str]] = {}
    for name, level in levels.items():
        if name in device:
            islands.setdefault(level, []).append(name)
    return [islands[level] for level in sorted(islands)]
