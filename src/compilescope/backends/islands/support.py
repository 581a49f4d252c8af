"""Which nodes of a graph a device takes, node by node, and why not the others.

A node is taken where no constraint refuses it or cannot tell, nothing else keeps it on the host,
and every value that it would be handed is one that the device takes. Works on portable graphs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from compilescope.knowledge.rules.constraints.dtype import DtypeConstraint
from compilescope.knowledge.rules.constraints.layout import LayoutConstraint
from compilescope.knowledge.rules.constraints.memory import MemoryConstraint
from compilescope.knowledge.rules.hardware.checks import check_graph
from compilescope.knowledge.rules.hardware.constraint import (
    Breach,
    Constraint,
    is_op,
    listed,
    shown_op,
    values,
)
from compilescope.knowledge.rules.hardware.op_names import OpPatterns
from compilescope.knowledge.rules.hardware.operands import note_unasked
from compilescope.record.graph import Graph, Node
from compilescope.record.graphs.user_lines import user_lines
from compilescope.record.stack import Frame

Unsure = Literal["host", "device"]


class NodeRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node stays on the host."""

    rule: str
    found: str
    allowed: str = ""
    remedy: str = ""
    severity: Literal["error", "unknown"] = "error"


class NodeJudgement:
    """What constraints say of each node of a graph."""

    def __init__(
        self,
        graph: Graph,
        constraints: Sequence[Constraint],
        *,
        kept: Mapping[str, NodeRefusal] | None = None,
        extra: Iterable[Breach] = (),
        unsure: Unsure = "host",
        called_at: Frame | None = None,
    ) -> None:
        """`kept` are nodes that stay on the host whatever the device says; `extra` are breaches
        that somebody else found; `unsure` says where nodes go of which a constraint cannot tell."""
        self.graph = graph
        self.nodes = {node.name: node for node in graph.nodes}
        self.lines = user_lines(graph, called_at)
        self._kept = dict(kept or {})
        self._unsure = unsure
        self._by_node, self.of_graphs = _sorted_out(constraints)
        self._values: dict[tuple[str, int], Breach | None] = {}
        self._formats = {
            number: OpPatterns(constraint.per_op)
            for number, constraint in enumerate(self._by_node)
            if isinstance(constraint, DtypeConstraint) and constraint.per_op
        }
        self._own: dict[str, list[Breach]] = {}
        self._judged = {node.name for node in values(graph)}
        asked = note_unasked(graph)
        for node in asked.nodes:
            if node.name in self._judged:
                self._own[node.name] = [b for c in self._by_node for b in _ask(c, node)]
        for constraint in self._by_node:
            if isinstance(constraint, LayoutConstraint):
                for breach in constraint.returned(asked):
                    self._own.setdefault(breach.node, []).append(breach)
        for breach in extra:
            self._own.setdefault(breach.node, []).append(breach)

    @property
    def breaches(self) -> list[Breach]:
        """Of all nodes, each with the user's line."""
        return [
            breach
            if breach.frame == self.lines.get(name)
            else msgspec.structs.replace(breach, frame=self.lines.get(name) or breach.frame)
            for name, found in self._own.items()
            for breach in found
        ]

    def is_valued(self, name: str) -> bool:
        """Does it have a value of its own? The picking of one of several results has not."""
        return name in self._judged

    def is_counted(self, name: str) -> bool:
        """Is it an op: neither an input, nor a number's arithmetic, nor the picking of a result?"""
        node = self.nodes[name]
        return is_op(node) and name in self._judged and not (node.no_tensor and not node.calls)

    def taken(self, waived: Collection[str] = ()) -> dict[str, NodeRefusal | None]:
        """Every op -> why it is refused, or None. `waived` are ops that count as taken as such."""
        result: dict[str, NodeRefusal | None] = {}
        for name, node in self.nodes.items():
            if not is_op(node):
                continue
            if name not in self._judged:
                # Whoever makes several results is where they are picked.
                result[name] = result.get(node.inputs[0]) if node.inputs else _LOOSE
            elif not self.is_counted(name):
                result[name] = _SIZES
            else:
                free = node.target in waived
                result[name] = (None if free else self._refusal(name)) or self._input(node, result)
        return result

    def _refusal(self, name: str) -> NodeRefusal | None:
        if name in self._kept:
            return self._kept[name]
        return next(filter(None, map(self._as_refusal, self._own.get(name, ()))), None)

    def _as_refusal(self, breach: Breach) -> NodeRefusal | None:
        if breach.severity == "warning":
            return None
        if breach.severity == "unknown" and self._unsure == "device":
            return None
        return NodeRefusal(
            rule=breach.rule,
            found=breach.found,
            allowed=breach.allowed,
            remedy=breach.remedy,
            severity=breach.severity,
        )

    def _input(self, node: Node, known: Mapping[str, NodeRefusal | None]) -> NodeRefusal | None:
        """A value from outside that the device does not take."""
        for name in node.inputs:
            if known.get(name, _LOOSE) is None:
                continue  # It is made on the device.
            breach = self._value_breach(name, node)
            refusal = self._as_refusal(breach) if breach else None
            if refusal is not None:
                found = f"its input is {refusal.found}, from {shown_op(self.nodes[name])}"
                return msgspec.structs.replace(refusal, rule="input", found=found)
        return None

    def _value_breach(self, name: str, user: Node) -> Breach | None:
        """What a constraint says of a value that comes from the host."""
        for number, constraint in enumerate(self._by_node):
            formats = self._formats.get(number)
            if formats and any(formats.match(call.op) for call in user.calls or ()):
                continue  # The op has formats of its own, and was asked about what it is given.
            key = (name, number)
            if key not in self._values:
                node = self.nodes[name]
                given = Node(name, "placeholder", node.target, (), node.outputs, node.frame)
                found = _ask(constraint, given)
                self._values[key] = next(filter(self._as_refusal, found), None)
            if self._values[key] is not None:
                return self._values[key]
        return None


_SIZES = NodeRefusal(rule="sizes", found="arithmetic with sizes")
_LOOSE = NodeRefusal(rule="loose", found="an item of an unknown value")


def _sorted_out(
    constraints: Sequence[Constraint],
) -> tuple[list[Constraint], list[Constraint]]:
    """Those that look at one node, and those that look at the graph that the device would get."""
    by_node: list[Constraint] = []
    of_graphs: list[Constraint] = []
    for constraint in constraints:
        if isinstance(constraint, MemoryConstraint):
            if constraint.max_tensor_bytes is not None:
                by_node.append(_TensorBytes(constraint.max_tensor_bytes))
            if constraint.max_memory_bytes is not None:
                of_graphs.append(MemoryConstraint(constraint.max_memory_bytes))
        elif type(constraint).check in (Constraint.check, LayoutConstraint.check):
            by_node.append(constraint)
        else:
            of_graphs.append(constraint)
    return by_node, of_graphs


class _TensorBytes(Constraint):
    """The part of a memory constraint that looks at one tensor."""

    id = MemoryConstraint.id

    def __init__(self, limit: int) -> None:
        self._whole = MemoryConstraint(None, max_tensor_bytes=limit)

    def check_node(self, node: Node) -> Iterable[Breach]:
        return self._whole.check(Graph((node,)))


def _ask(constraint: Constraint, node: Node) -> list[Breach]:
    try:
        found = list(listed(constraint.check_node(node)))
        for breach in found:
            if not isinstance(breach, Breach):
                raise TypeError(f"it returned {breach!r}, not a Breach")
        return found
    except Exception as error:  # The border to a plugin.
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        why = f"the constraint {type(constraint).__name__} failed with {said}"
        return [constraint.cannot_tell(node, why, "unknown")]


def island_graph(graph: Graph, names: Collection[str], outputs: Sequence[str]) -> Graph:
    """The graph that the device would get: the nodes, with what they need as inputs."""
    wanted = set(names)
    nodes = {node.name: node for node in graph.nodes}
    given: dict[str, Node] = {}
    inside: list[Node] = []
    for node in graph.nodes:
        if node.name not in wanted:
            continue
        inside.append(node)
        for name in node.inputs:
            if name not in wanted and name not in given:
                source = nodes[name]
                given[name] = Node(
                    name, "placeholder", name, (), source.outputs, source.frame,
                    source=source.source, no_tensor=source.no_tensor,
                )  # fmt: skip
    end = Node("output", "output", "output", tuple(outputs))
    return Graph((*given.values(), *inside, end), graph.stacks)


def island_refusal(
    graph: Graph, constraints: Sequence[Constraint], unsure: Unsure
) -> Breach | None:
    """What a constraint that looks at whole graphs has against an island."""
    for breach in check_graph(graph, constraints):
        if breach.severity == "error" or (breach.severity == "unknown" and unsure == "host"):
            return breach
    return None
