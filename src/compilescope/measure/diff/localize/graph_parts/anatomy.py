"""A backend that records the graphs of a program with the values of each graph's first call, and
what is in a graph, found by running it once: tensors, modes, random numbers, possible parts.

Only tensors go from one part to another. Numbers are computed anew in each part, modes are entered
anew. A cut that neither would do for (a tuple passed on whole, a region of `vmap`) isn't allowed.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from compilescope.instrument.torchapi.trials.backends import Compile, note_compile
from compilescope.measure.diff.runs.modes import CallModes, RandomState, kept_random_state, mode_key
from compilescope.measure.tensors.copies import copied_values

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


_MOST_CALLS = 8
"""Of one graph in one run of the program. Chosen: each keeps a copy of its inputs, and a mistake
that first shows in a later call is not found."""


@dataclass
class RecordedCall:
    """One call of a graph."""

    inputs: list[Any]
    ambient: CallModes
    occasion: int = 0
    """Of which run of the program, where it is run several times."""
    cotangents: dict[int, torch.Tensor] = field(default_factory=dict)
    """Which of the results -> the gradient that came back to it in the backward pass."""


@dataclass
class GraphRecord:
    """A graph as Dynamo handed it over; nobody has changed it since."""

    number: int
    module: GraphModule
    calls: list[RecordedCall] = field(default_factory=list)
    calls_seen: int = 0
    """Of them the first few are kept."""
    compile: Compile = field(default_factory=Compile)
    asked: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext
    """Within it a backend is asked about the graph, or a part of it."""

    @property
    def size(self) -> int:
        """Its nodes, without inputs and the output."""
        return sum(node.op.startswith("call_") for node in self.module.graph.nodes)


class GraphRecorder:
    """A backend that keeps what it is given, and runs it by the reference."""

    def __init__(self, reference: Callable[..., Any] | None = None) -> None:
        self.graphs: list[GraphRecord] = []
        self.occasion = 0
        """The run of the program that is under way."""
        self.thorough = True
        """Keep the first few calls of a run; else only the one that a graph was compiled for."""
        self._reference = reference
        self._parameters: dict[tuple[int, int], Any] = {}

    def __call__(self, module: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        noted = note_compile(module, inputs)
        recorded = GraphRecord(len(self.graphs), copy_module(module), compile=noted)
        self.graphs.append(recorded)
        run = module.forward
        if self._reference is not None:
            run = self._reference(module, list(inputs))

        def record_and_run(*values: Any) -> Any:
            if recorded.calls and not self.thorough:
                return run(*values)
            recorded.calls_seen += 1
            if sum(call.occasion == self.occasion for call in recorded.calls) >= _MOST_CALLS:
                return run(*values)
            call = RecordedCall(self._copies(values), CallModes.now(), self.occasion)
            recorded.calls.append(call)
            results = run(*values)
            _note_cotangents(results, call)
            return results

        return record_and_run

    def _copies(self, values: Sequence[Any]) -> list[Any]:
        """Weights are the same in most calls: one copy serves them all."""
        loose: dict[int, Any] = {}
        for number, value in enumerate(values):
            if not isinstance(value, torch.nn.Parameter):
                loose[number] = value
        copies = dict(zip(loose, copied_values(list(loose.values())), strict=True))
        for number, value in enumerate(values):
            if number in loose:
                continue
            key = (id(value), value._version)
            if key not in self._parameters:
                # The weight is held too: its id may not be used again.
                self._parameters[key] = (value, *copied_values([value]))
            copies[number] = self._parameters[key][1]
        return [copies[number] for number in range(len(values))]


def _note_cotangents(results: Any, call: RecordedCall) -> None:
    for number, result in enumerate(results if isinstance(results, (tuple, list)) else (results,)):
        if not isinstance(result, torch.Tensor) or result.grad_fn is None:
            continue

        def note(gradient: torch.Tensor, number: int = number) -> None:
            call.cotangents[number] = gradient.detach().clone()

        result.register_hook(note)


def copy_module(module: GraphModule) -> GraphModule:
    """A graph of its own over the same weights: a backend may change what it is given."""
    graph = Graph()
    result = graph.graph_copy(module.graph, {}, return_output_node=True)
    if result is not None:
        value, old = result
        new = graph.output(value)
        new.meta = dict(old.meta)
    return GraphModule(module, graph, type(module).__name__)


def graph_of_module(module: GraphModule, inputs: Sequence[Any]) -> GraphRecord:
    """A graph that the user has already, as if it were called now."""
    call = RecordedCall(copied_values(inputs), CallModes.now())
    return GraphRecord(0, copy_module(module), [call], 1)
