"""A part of a graph as a graph of its own.

Nodes keep their names, places in the source and order. What the part needs from outside becomes
inputs; what others need of it, its results. Modes that hold where it was taken from are entered
again, and numbers are computed again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, GraphModule, Node

from compilescope.instrument.torchapi.graphs.values import symbol_of, symbols_in
from compilescope.measure.diff.localize.graph_parts.anatomy import (
    Anatomy,
    grad_mode_of,
    is_entry,
    is_exit,
    is_item_of,
)
from compilescope.measure.tensors.copies import copied_values


class PartInput(NamedTuple):
    """A value that a part is given."""

    node: Node
    """Of the whole graph."""
    at: int
    """The value is the one just before the node of that number runs: it may be written to."""
    owner: Node | None = None
    """The first node of the group that it is for, where groups stand side by side."""


@dataclass
class GraphPart:
    """Nodes of a graph, ready to be compiled."""

    graph: Graph
    root: GraphModule
    nodes: tuple[Node, ...]
    inputs: tuple[PartInput, ...]
    outputs: tuple[Node, ...]
    """All nodes of the whole graph."""
    whole: bool = False
    writes: bool = False
    """Some node of it changes what it is given."""

    @functools.cached_property
    def eager(self) -> GraphModule:
        """For runs by the reference, of which no trace is left."""
        return self.module()

    def module(self) -> GraphModule:
        """A new one each time: backends change what they are given."""
        graph = Graph()
        copied = graph.graph_copy(self.graph, {}, return_output_node=True)
        value, old = copied
        graph.output(value).meta = dict(old.meta)
        made = GraphModule(self.root, graph, "GraphModule")
        for node in graph.nodes:
            # What one run writes into a constant, the next may not see.
            held = getattr(made, str(node.target), None) if node.op == "get_attr" else None
            if isinstance(held, torch.Tensor):
                setattr(made, str(node.target), *copied_values([held]))
        return made


def whole_part(anatomy: Anatomy) -> GraphPart:
    """The graph as it is."""
    graph = Graph()
    copied = graph.graph_copy(anatomy.module.graph, {}, return_output_node=True)
    value, old = copied
    graph.output(value).meta = dict(old.meta)
    inputs = [PartInput(n, 0) for n in anatomy.module.graph.nodes if n.op == "placeholder"]
    return GraphPart(
        graph,
        anatomy.module,
        tuple(anatomy.nodes),
        tuple(inputs),
        tuple(old.all_input_nodes),
        whole=True,
        writes=bool(anatomy.writing),
    )


def part_of(
    anatomy: Anatomy,
    nodes: Sequence[Node],
    *,
    grad: bool,
    exposed: Iterable[Node] = (),
    lifted: Iterable[Node] = (),
) -> GraphPart:
    """`grad`: is grad mode on where the graph begins? `exposed` nodes are results as well.
    `lifted` ones are left out: the part is given their results."""
    return _PartWriter(anatomy, grad).write_together(nodes, set(exposed), set(lifted))


def side_by_side(anatomy: Anatomy, units: Sequence[Sequence[Node]], *, grad: bool) -> GraphPart:
    """Each unit has inputs of its own: none sees what another computes."""
    return _PartWriter(anatomy, grad).write_apart(units)


class _PartWriter:
    def __init__(self, anatomy: Anatomy, grad: bool) -> None:
        self._anatomy = anatomy
        self._grad = grad
        self._graph = Graph()
        self._inputs: list[PartInput] = []
        self._chosen: list[Node] = []
        self._given: dict[tuple[Node, Any], Node] = {}
        self._written: dict[Node, Node] = {}
        self._symbols = {
            symbol: node
            for node in anatomy.module.graph.nodes
            if node.op == "placeholder" and (symbol := symbol_of(value_of(node)))
        }

    def write_together(
        self, nodes: Sequence[Node], exposed: set[Node], lifted: set[Node]
    ) -> GraphPart:
        lifted = self._with_items(lifted)
        inside = [node for node in nodes if node not in lifted]
        wanted = self._outgoing(inside, exposed)
        first = self._anatomy.position[nodes[0]]
        needs = self._needs(inside)
        for node in self._placed(needs):
            self._place(node, self._at(node, first), None)
        self._write(nodes, set(inside), None)
        return self._finish(wanted)

    def write_apart(self, units: Sequence[Sequence[Node]]) -> GraphPart:
        wanted: list[Node] = []
        for number, unit in enumerate(units):
            first = self._anatomy.position[unit[0]]
            for node in self._placed(self._needs(unit)):
                self._place(node, self._at(node, first), number, unit[0])
        for number, unit in enumerate(units):
            self._write(unit, set(unit), number)
            wanted += self._outgoing(list(unit), set())
        return self._finish(wanted)

    def _finish(self, wanted: list[Node]) -> GraphPart:
        output = self._graph.output(tuple(self._written[node] for node in wanted))
        output.meta = {}
        return GraphPart(
            self._graph,
            self._anatomy.module,
            tuple(self._chosen),
            tuple(self._inputs),
            tuple(wanted),
            writes=not self._anatomy.writing.isdisjoint(self._chosen),
        )

    def _needs(self, nodes: Iterable[Node]) -> set[Node]:
        """What comes from outside: tensors, and what numbers are computed from."""
        inside, needs = set(nodes), set()
        waiting = [other for node in nodes for other in node.all_input_nodes]
        seen: set[Node] = set()
        while waiting:
            node = waiting.pop()
            if node in inside or node in seen or node.op == "get_attr":
                continue
            seen.add(node)
            if self._is_again(node):
                waiting += node.all_input_nodes
            elif self._anatomy.kinds[node] != "mode":
                needs.add(node)
        symbols = {s for node in (*needs, *nodes) for s in symbols_in(value_of(node))}
        needs.update(self._symbols[symbol] for symbol in symbols if symbol in self._symbols)
        return needs

    def _is_again(self, node: Node) -> bool:
        return node.op.startswith("call_") and self._anatomy.kinds[node] == "number"

    def _placed(self, needs: set[Node]) -> list[Node]:
        holders = [n for n in self._anatomy.module.graph.nodes if n.op == "placeholder"]
        own = [node for node in holders if node in needs]
        return own + [node for node in self._anatomy.nodes if node in needs]

    def _at(self, node: Node, first: int) -> int:
        """As late as the part begins, but not before the node has run."""
        known = node.op == "placeholder" or self._anatomy.position[node] < first
        return first if known else self._anatomy.position[node] + 1

    def _place(self, node: Node, at: int, group: Any, owner: Node | None = None) -> None:
        if node.op == "placeholder" and not any(known is node for known, _ in self._given):
            new = self._graph.node_copy(node, lambda n: n)
        else:
            # Named as Dynamo names inputs: a backend that looks for an operator by its name
            # should find the operator, not what it gave.
            name = f"value_{len(self._inputs)}_"
            new = self._graph.create_node("placeholder", f"L_{name}", name=f"l_{name}")
            kept = ("example_value", "val", "tensor_meta", "stack_trace")
            new.meta = {key: node.meta[key] for key in kept if key in node.meta}
        self._given[node, group] = new
        self._inputs.append(PartInput(node, at, owner))

    def _with_items(self, lifted: set[Node]) -> set[Node]:
        kinds = self._anatomy.kinds
        return lifted | {
            node for node in self._anatomy.nodes
            if is_item_of(node, kinds) and node.args[0] in lifted
        }  # fmt: skip

    def _outgoing(self, nodes: list[Node], exposed: set[Node]) -> list[Node]:
        """Tensors that are used elsewhere. A part that only writes gives its last tensor."""
        inside = set(nodes)
        tensors = [node for node in nodes if self._anatomy.kinds[node] == "tensor"]
        out = [
            node
            for node in tensors
            if node in exposed or any(user not in inside for user in node.users)
        ]
        return out or tensors[-1:]

    def _write(self, nodes: Sequence[Node], inside: set[Node], group: Any) -> None:
        regions = _OpenModes(self, self._anatomy.nodes[: self._anatomy.position[nodes[0]]], group)
        new = regions.enter()
        for node in nodes:
            if node not in inside and self._anatomy.kinds[node] != "mode":
                continue
            regions.follow(node)
            new[node] = self._copy(node, new, group)
            self._written[node] = new[node]
            self._chosen.append(node)
        regions.leave(new)

    def _copy(self, node: Node, new: dict[Node, Node], group: Any) -> Node:
        def find(other: Node) -> Node:
            if other in new:
                return new[other]
            if (other, group) in self._given:
                return self._given[other, group]
            new[other] = self._copy(other, new, group)
            return new[other]

        return self._graph.node_copy(node, find)


class _OpenModes:
    """The modes that hold at the beginning of a part, and what ends them."""

    def __init__(self, writer: _PartWriter, before: Sequence[Node], group: Any) -> None:
        self._writer = writer
        self._group = group
        self._open: list[Node] = []
        self._grad_node: Node | None = None
        for node in before:
            self.follow(node)

    def follow(self, node: Node) -> None:
        if grad_mode_of(node) is not None:
            self._grad_node = node
        elif is_exit(node):
            self._open = [entry for entry in self._open if entry not in node.all_input_nodes]
        elif is_entry(node):
            self._open.append(node)

    def enter(self) -> dict[Node, Node]:
        new: dict[Node, Node] = {}
        for entry in self._open:
            new[entry] = self._writer._copy(entry, new, self._group)
        node = self._grad_node
        if node is not None and grad_mode_of(node) != self._writer._grad:
            self._writer._copy(node, new, self._group)
        return new

    def leave(self, new: dict[Node, Node]) -> None:
        graph = self._writer._graph
        for entry in reversed(self._open):
            leaving = next(user for user in entry.users if is_exit(user))
            graph.call_function(leaving.target, (new[entry],))
        node = self._grad_node
        if node is not None and grad_mode_of(node) != self._writer._grad:
            graph.call_function(node.target, (self._writer._grad,))


def value_of(node: Node) -> Any:
    """What the compiler noted of a node's result."""
    return node.meta.get("val", node.meta.get("example_value"))


def is_dynamic(part: GraphPart) -> bool:
    """Are there sizes that the compiler keeps as symbols?"""
    return any(
        isinstance(value_of(given.node), torch.SymInt) or symbols_in(value_of(given.node))
        for given in part.inputs
    )
