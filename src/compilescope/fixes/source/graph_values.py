"""What the graphs and guards of a run tell of the values that went into its functions.

No run of its own is needed for this: every compilation has recorded the tensors that it was made
for, with dtype, shape and gradient, and the numbers that it took for constants.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from compilescope.fixes.facts import ValueFact
from compilescope.model.bodies import GraphBreak, GraphCaptured, Guard, GuardSet
from compilescope.model.graph import Graph, Node, TensorInfo, decode_graph
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef

_LOCAL = re.compile(r"^L\['(\w+)'\]$")
_ATTRIBUTE = re.compile(r"^L\['self'\](?:\._(?:parameters|buffers)\['(\w+)'\]|\.(\w+))$")
_GLOBAL = re.compile(r"^G\['(\w+)'\]$")
_TYPED = re.compile(r"type=<class '(int|float|bool)'>$")
_NUMBERED = re.compile(r"_\d+$")
_PYTHON = {"int": "number", "float": "number", "bool": "number", "complex": "number", "str": "text"}
_MOST_GRAPHS = 400
"""Of one run: beyond, a report would wait for them."""


class Incoming(NamedTuple):
    """A value at the beginning of a compiled function, or where it goes on after a break."""

    frame: CodeRef
    name: str
    """`x`, `self.weight`; a global has a dot before it."""
    fact: ValueFact


class Named(NamedTuple):
    """A value that a line of the program gives a name to."""

    line: int
    name: str
    fact: ValueFact


@dataclass
class GraphValues:
    """By file: all that the compilations of one run have recorded."""

    incoming: dict[str, list[Incoming]] = field(default_factory=dict)
    named: dict[str, list[Named]] = field(default_factory=dict)
    dtypes: set[str] = field(default_factory=set)
    computes_grad: bool = False
    """Some result of a graph has a gradient."""
    with_grad: set[tuple[str, str]] = field(default_factory=set)
    """(file, function) of compilations some result of which has a gradient."""
    traced: set[tuple[str, str, int]] = field(default_factory=set)
    """(file, function, line) of code that graphs were made of."""
    operations: set[str] = field(default_factory=set)
    """What the nodes of graphs call, as torch names it."""
    graphs: int = 0


_known: WeakKeyDictionary[Run, GraphValues] = WeakKeyDictionary()


def graph_values(run: Run) -> GraphValues:
    """Read once."""
    if run not in _known:
        _known[run] = _read(run)
    return _known[run]


def _read(run: Run) -> GraphValues:
    found = GraphValues()
    for _, body in run.of(GraphCaptured):
        if body.stage != "dynamo":
            continue
        text = run.artifacts.get(body.graph) if body.graph else None
        if not text or body.frame is None or found.graphs >= _MOST_GRAPHS:
            continue
        found.graphs += 1
        with suppress(msgspec.MsgspecError):
            _add_graph(found, body.frame, decode_graph(text))
    for event, broken in run.of(GraphBreak):
        site = event.site
        if site is not None and broken.within is not None and broken.within.file == site.file:
            _add_break(found, msgspec.structs.replace(broken.within, resumed_at=site.line), broken)
    for _, guards in run.of(GuardSet):
        text = run.artifacts.get(guards.artifact)
        if text and guards.frame is not None:
            _add_guards(found, guards.frame, text)
    for file, values in found.incoming.items():
        found.incoming[file] = list(_without_wrapped(values))
    return found


def _without_wrapped(values: list[Incoming]) -> Iterator[Incoming]:
    """A float that varies goes into a graph as a tensor of no dimensions; it is none."""
    places = [(each.frame.function, each.name) for each in values if each.fact.kind == "number"]
    numbers = set(places)
    for each in values:
        fact, wrapped = each.fact, (each.frame.function, each.name) in numbers
        if wrapped and fact.kind == "tensor" and (fact.dtype, fact.shape) == ("float64", ()):
            yield each._replace(fact=ValueFact("number", "builtins.float"))
        else:
            yield each


def _add_graph(found: GraphValues, frame: CodeRef, graph: Graph) -> None:
    for stack in graph.stacks:
        found.traced.update((each.file, each.function, each.line) for each in stack)
    for node in graph.nodes:
        found.dtypes.update(info.dtype for info in node.outputs)
        found.operations.add(node.target)
        if node.frame is not None:
            found.traced.add((node.frame.file, node.frame.function, node.frame.line))
        if node.op.startswith("call_") and any(info.requires_grad for info in node.outputs):
            found.computes_grad = True
            found.with_grad.add((frame.file, frame.function))
        if node.op == "placeholder":
            name, fact = name_of(node.source), _fact_of(node)
            if name and fact is not None:
                found.incoming.setdefault(frame.file, []).append(Incoming(frame, name, fact))
        elif node.frame is not None and len(node.outputs) == 1:
            name = _NUMBERED.sub("", node.name)
            for each in dict.fromkeys((node.name, name)):
                named = Named(node.frame.line, each, tensor_fact(node.outputs[0]))
                found.named.setdefault(node.frame.file, []).append(named)


def _add_break(found: GraphValues, frame: CodeRef, broken: GraphBreak) -> None:
    """Dynamo knew every variable when it stopped."""
    incoming = found.incoming.setdefault(frame.file, [])
    incoming += [Incoming(frame, name, fact) for name, fact in broken.values.items()]


def name_of(source: str) -> str:
    """What the function itself calls it; empty for a part of something else."""
    if local := _LOCAL.match(source):
        return local[1]
    if attribute := _ATTRIBUTE.match(source):
        return f"self.{attribute[1] or attribute[2]}"
    if outside := _GLOBAL.match(source):
        return f".{outside[1]}"
    return ""


def _fact_of(node: Node) -> ValueFact | None:
    if node.outputs:
        return tensor_fact(node.outputs[0], parameter="_parameters[" in node.source)
    return ValueFact("number", "builtins.int") if node.no_tensor else None


def tensor_fact(info: TensorInfo, *, parameter: bool = False) -> ValueFact:
    return ValueFact(
        "parameter" if parameter else "tensor",
        "torch.nn.parameter.Parameter" if parameter else "torch.Tensor",
        dtype=info.dtype,
        # A size that varies is no number; how many there are is known all the same.
        shape=tuple(size if isinstance(size, int) else -1 for size in info.shape),
        device=info.device,
        requires_grad=info.requires_grad,
    )


def _add_guards(found: GraphValues, frame: CodeRef, text: str) -> None:
    try:
        guards = msgspec.json.decode(text, type=list[Guard])
    except msgspec.MsgspecError:
        return
    for guard in guards:
        name = name_of(guard.source)
        if not name:
            continue
        for fact in _constants(guard):
            found.incoming.setdefault(frame.file, []).append(Incoming(frame, name, fact))


def _constants(guard: Guard) -> Iterator[ValueFact]:
    """`L['n'] == 3` is a number, `L['mask'] is None` nothing."""
    for check in guard.checks:
        if check == f"{guard.source} is None":
            yield ValueFact("none", "builtins.NoneType", value="None")
        elif guard.kind == "TYPE_MATCH" and (typed := _TYPED.search(check)):
            yield ValueFact("number", f"builtins.{typed[1]}")
        elif check.startswith(f"{guard.source} == "):
            try:
                value = ast.literal_eval(check.removeprefix(f"{guard.source} == "))
            except (SyntaxError, ValueError):
                continue
            kind = _PYTHON.get(type(value).__name__)
            if kind is not None:
                words = repr(value)
                short = words if len(words) <= 40 else ""
                yield ValueFact(kind, f"builtins.{type(value).__name__}", value=short)  # type: ignore[arg-type]
