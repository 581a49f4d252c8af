"""What is in a graph, found by running it once: tensors, modes, random numbers, and possible cuts.

Only tensors go from one part to another. Numbers are computed anew in each part, modes are entered
anew. A cut that neither would do for (a tuple passed on whole, a region of `vmap`) isn't allowed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Interpreter, Node

from compilescope.diff.localize.graph_parts.recorder import RecordedCall
from compilescope.diff.runs.modes import RandomState, kept_random_state, mode_key
from compilescope.tensors.copies import copied_values

_NUMBERS = (
    int, float, complex, str, torch.SymInt, torch.SymFloat, torch.SymBool,
    torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size,
)  # fmt: skip


@dataclass
class Anatomy:
    """Of one graph."""

    module: GraphModule
    nodes: list[Node]
    """All calls in an order of execution; parts of a tuple right behind it."""
    kinds: dict[Node, str]
    """`tensor`, `number`, `mode`, `none` (there for its effect) or `other`."""
    random: set[Node]
    writing: set[Node]
    """Nodes that change what they are given."""
    cuts: list[int]
    """Where the graph may be cut, the ends included: before the node of that number."""
    size_bytes: int = 0
    """Of all results together."""
    position: dict[Node, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.position = {node: number for number, node in enumerate(self.nodes)}

    @property
    def units(self) -> int:
        """Pieces that cannot be cut further: nearly always one operator each."""
        return len(self.cuts) - 1

    def unit(self, number: int) -> list[Node]:
        return self.span(number, number + 1)

    def span(self, low: int, high: int) -> list[Node]:
        """The nodes of the units from `low` up to `high`."""
        return self.nodes[self.cuts[low] : self.cuts[high]]

    def unit_of(self, node: Node) -> int:
        at = self.position[node]
        return next(n for n in range(self.units) if self.cuts[n] <= at < self.cuts[n + 1])

    def with_items(self, nodes: Iterable[Node]) -> list[Node]:
        """In order, with the parts of tuples that they give."""
        wanted = set(nodes)
        for node in self.nodes:
            if is_item_of(node, self.kinds) and node.args[0] in wanted:
                wanted.add(node)
        return [node for node in self.nodes if node in wanted]

    def computing(self, nodes: list[Node]) -> list[Node]:
        """Those that compute: without modes, numbers and parts of tuples."""
        return [
            node
            for node in nodes
            if self.kinds[node] in ("tensor", "other", "none") and not is_item_of(node, self.kinds)
        ]


def examine(module: GraphModule, call: RecordedCall) -> Anatomy:
    """Runs the graph once, on copies of what it was called with."""
    seen = _NodeObserver(module)
    with kept_random_state(), call.ambient.entered():
        call.ambient.random.restore()
        seen.run(*copied_values(call.inputs))
    nodes = _in_order(module, seen.kinds)
    cuts = _cuts(nodes, seen)
    return Anatomy(module, nodes, seen.kinds, seen.random, seen.writing, cuts, seen.size_bytes)


class _NodeObserver(Interpreter):  # type: ignore[misc]
    """Looks at what each node does."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.kinds: dict[Node, str] = {}
        self.random: set[Node] = set()
        self.writing: set[Node] = set()
        self.size_bytes = 0
        self.keys: dict[Node, tuple[Any, Any]] = {}
        """What the modes were before and after a node."""

    def run_node(self, n: Node) -> Any:
        if not n.op.startswith("call_"):
            value = super().run_node(n)
            self.kinds[n] = _kind(value)
            return value
        before, drawn = mode_key(), RandomState()
        given = [self.env[other] for other in n.all_input_nodes]
        versions = [_version(item) for item in given]
        value = super().run_node(n)
        after = mode_key()
        if isinstance(value, torch.Tensor) and value.layout is torch.strided:
            self.size_bytes += value.numel() * value.element_size()
        if versions != [_version(item) for item in given]:
            self.writing.add(n)
        self.keys[n] = (before, after)
        if drawn != RandomState():
            self.random.add(n)
        switches = before != after or grad_mode_of(n) is not None or is_entry(n) or is_exit(n)
        self.kinds[n] = "mode" if switches else _kind(value)
        return value


def _version(value: Any) -> int:
    """It grows with each write. Inference tensors have none."""
    if not isinstance(value, torch.Tensor) or value.is_inference():
        return 0
    return int(value._version)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "tensor"
    if value is None:
        return "none"
    return "number" if isinstance(value, _NUMBERS) else "other"


def target_name(node: Node) -> str:
    if isinstance(node.target, str):
        return node.target
    return str(getattr(node.target, "__name__", ""))


def grad_mode_of(node: Node) -> bool | None:
    """What it sets grad mode to."""
    if target_name(node) != "_set_grad_enabled" or len(node.args) != 1:
        return None
    return bool(node.args[0])


def is_entry(node: Node) -> bool:
    return node.op == "call_function" and any(is_exit(user) for user in node.users)


def is_exit(node: Node) -> bool:
    """Of a region that another node entered: autocast, inference mode."""
    return target_name(node).startswith("_exit_") and bool(node.all_input_nodes)


def is_item_of(node: Node, kinds: dict[Node, str]) -> bool:
    return node.target is operator.getitem and kinds.get(node.args[0]) == "other"


def _in_order(module: GraphModule, kinds: dict[Node, str]) -> list[Node]:
    order: dict[Node, None] = {}

    def add(node: Node) -> None:
        if node in order:
            return
        order[node] = None
        if kinds[node] == "other":
            for user in node.users:
                if is_item_of(user, kinds):
                    add(user)

    for node in module.graph.nodes:
        if node.op.startswith("call_"):
            add(node)
    return list(order)


def _cuts(nodes: list[Node], seen: _NodeObserver) -> list[int]:
    position = {node: number for number, node in enumerate(nodes)}
    forbidden: set[int] = set()
    for node, at in position.items():
        kind = seen.kinds[node]
        if kind == "other":
            uses = [position.get(user, len(nodes)) for user in node.users]
            forbidden.update(range(at + 1, min(max(uses, default=at), len(nodes) - 1) + 1))
        elif kind == "number" or (kind == "mode" and not is_exit(node)):
            forbidden.add(at + 1)
        if is_exit(node):
            forbidden.add(at)
        if kind == "mode" and grad_mode_of(node) is None and not is_entry(node):
            forbidden.update(range(at + 1, _end_of_region(nodes, at, seen) + 1))
    inner = [at for at in range(1, len(nodes)) if at not in forbidden]
    return [0, *inner, len(nodes)] if nodes else [0]


def _end_of_region(nodes: list[Node], start: int, seen: _NodeObserver) -> int:
    """Of one that nobody here knows how to enter anew: where the modes are as before it."""
    if is_exit(nodes[start]):
        return start
    before = seen.keys[nodes[start]][0]
    for at in range(start + 1, len(nodes)):
        if seen.kinds[nodes[at]] == "mode" and seen.keys[nodes[at]][1] == before:
            return at
    return len(nodes) - 1
