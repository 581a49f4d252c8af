"""What a run tells of the values in its functions: by its graphs and guards, and by the facts that
the original program, run eagerly, gave of its variables.

No run of its own is needed for this: every compilation has recorded the tensors that it was made
for, with dtype, shape and gradient, and the numbers that it took for constants; and, where it goes
on after a break, what the variables held there. That is the truth as long as no line between gives
the name something else.

Facts guide a fix to what may hold; that it does hold is for the verification to show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from weakref import WeakKeyDictionary

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.source.flow.liveness import parameters, targets
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphBreak, GraphCaptured, Guard, GuardSet
from compilescope.record.graph import Graph, Node, TensorInfo, decode_graph
from compilescope.record.guards import decode_guards
from compilescope.record.python_text import read_literal
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.record.values import RETURNED as RETURNED
from compilescope.record.values import ValueFact as ValueFact
from compilescope.record.values import is_permuted

_LOCAL = late(r"^L\['(\w+)'\]$")
_ATTRIBUTE = late(r"^L\['(\w+)'\](?:\._(?:parameters|buffers)\['(\w+)'\]|\.(\w+))$")
_GLOBAL = late(r"^G\['(\w+)'\]$")
_TYPED = late(r"type=<class '(int|float|bool)'>$")
_NUMBERED = late(r"_\d+$")
_PYTHON = {"int": "number", "float": "number", "bool": "number", "complex": "number", "str": "text"}
_MOST_GRAPHS = 400
"""Chosen, as the next: values recur from graph to graph."""
_MOST_GUARD_SETS = 2000
"""Distinct ones of one run. Chosen: beyond, a report would wait for them."""


class Incoming(msgspec.Struct, frozen=True):
    """A value at the beginning of a compiled function, or where it goes on after a break."""

    frame: CodeRef
    name: str
    """`x`, `self.weight`; a global has a dot before it."""
    fact: ValueFact


class Named(msgspec.Struct, frozen=True):
    """A value that a line of the program gives a name to."""

    line: int
    name: str
    fact: ValueFact


class GraphValues(msgspec.Struct):
    """By file: all that the compilations of one run have recorded."""

    incoming: dict[str, list[Incoming]] = msgspec.field(default_factory=dict)
    named: dict[str, list[Named]] = msgspec.field(default_factory=dict)
    dtypes: set[str] = msgspec.field(default_factory=set)
    computes_grad: bool = False
    """Some result of a graph has a gradient."""
    drops_grad: bool = False
    """Some result has none though what it is computed of has one: gradients were off."""
    with_grad: set[tuple[str, str]] = msgspec.field(default_factory=set)
    """(file, function) of compilations some result of which has a gradient."""
    traced: set[tuple[str, str, int]] = msgspec.field(default_factory=set)
    """(file, function, line) of code that graphs were made of."""
    operations: set[str] = msgspec.field(default_factory=set)
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
    read: set[tuple[CodeRef | None, str | None]] = set()
    for _, body in run.of(GraphCaptured):
        if body.stage != "dynamo" or (body.frame, body.graph) in read:
            continue
        read.add((body.frame, body.graph))
        text = run.artifacts.get(body.graph) if body.graph else None
        if not text or body.frame is None or found.graphs >= _MOST_GRAPHS:
            continue
        found.graphs += 1
        with suppress(msgspec.MsgspecError):
            _add_graph(found, body.frame, decode_graph(text))
    broken_at: dict[tuple[int, int | None], None] = {}
    for event, broken in run.of(GraphBreak):
        site = event.site
        # Breaks that are the same in all are one object.
        if site is None or (id(broken), site.line) in broken_at:
            continue
        broken_at[id(broken), site.line] = None
        if broken.within is not None and broken.within.file == site.file:
            _add_break(found, msgspec.structs.replace(broken.within, resumed_at=site.line), broken)
    for frame, artifact in _distinct_guards(run):
        text = run.artifacts.get(artifact)
        if text:
            _add_guards(found, frame, text)
    for file, values in found.incoming.items():
        found.incoming[file] = list(dict.fromkeys(_without_wrapped(values)))
    return found


def _distinct_guards(run: Run) -> list[tuple[CodeRef, str]]:
    known = {(body.frame, body.artifact): None for _, body in run.of(GuardSet)}
    pairs = [(frame, artifact) for frame, artifact in known if frame is not None]
    return pairs[:_MOST_GUARD_SETS]


def _without_wrapped(values: list[Incoming]) -> Iterator[Incoming]:
    """A float that varies goes into a graph as a tensor of no dimensions; it is none."""
    places = [(each.frame.function, each.name) for each in values if each.fact.kind == "number"]
    numbers = set(places)
    for each in values:
        fact, wrapped = each.fact, (each.frame.function, each.name) in numbers
        if wrapped and fact.kind == "tensor" and (fact.dtype, fact.shape) == ("float64", ()):
            yield msgspec.structs.replace(each, fact=ValueFact("number", "builtins.float"))
        else:
            yield each


def _add_graph(found: GraphValues, frame: CodeRef, graph: Graph) -> None:
    for stack in graph.stacks:
        found.traced.update((each.file, each.function, each.line) for each in stack)
    leaves = {
        node.name
        for node in graph.nodes
        if node.op == "placeholder" and any(info.requires_grad for info in node.outputs)
    }
    for node in graph.nodes:
        found.drops_grad |= not leaves.isdisjoint(node.inputs) and _drops_grad(node)
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


def _drops_grad(node: Node) -> bool:
    """Though an input of it requires a gradient. What never has one says nothing."""
    if not node.op.startswith("call_") or node.target.rpartition(".")[2] in _NEVER_GRADED:
        return False
    return any("float" in info.dtype and not info.requires_grad for info in node.outputs)


_NEVER_GRADED = frozenset({"detach", "detach_", "zeros_like", "ones_like", "full_like"})


def _add_break(found: GraphValues, frame: CodeRef, broken: GraphBreak) -> None:
    """Dynamo knew every variable when it stopped."""
    incoming = found.incoming.setdefault(frame.file, [])
    incoming += [Incoming(frame, name, fact) for name, fact in broken.values.items()]


def name_of(source: str) -> str:
    """What the function itself calls it; empty for a part of something else."""
    if local := _LOCAL.match(source):
        return local[1]
    if attribute := _ATTRIBUTE.match(source):
        return f"{attribute[1]}.{attribute[2] or attribute[3]}"
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
        permuted=info.stride is not None and is_permuted(info.shape, info.stride),
    )


def _add_guards(found: GraphValues, frame: CodeRef, text: str) -> None:
    try:
        guards = decode_guards(text) if text.startswith("[") else []
    except msgspec.DecodeError:
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
                value = read_literal(check.removeprefix(f"{guard.source} == "))
            except ValueError:
                continue
            kind = _PYTHON.get(type(value).__name__)
            if kind is not None:
                words = repr(value)
                short = words if len(words) <= 40 else ""
                yield ValueFact(kind, f"builtins.{type(value).__name__}", value=short)  # type: ignore[arg-type]


_Facts = tuple[ValueFact, ...]


def seen_at(run: Run, module: SourceModule, line: int, name: str) -> _Facts:
    """Empty where nobody can tell."""
    function = _function_at(module, line)
    if function is None:
        return ()
    values = graph_values(run)
    incoming = [
        each
        for each in values.incoming.get(module.path, ())
        if _is_of(module, function, each) and each.name in (name, f".{name}")
    ]
    if name not in parameters(function) and not _bindings(module, function, name):
        if "." in name:
            return _distinct(each.fact for each in incoming if each.name == name)
        return _distinct(each.fact for each in incoming if each.name == f".{name}")
    incoming = [each for each in incoming if each.name == name]
    bound = [_span(module, each) for each in _bindings(module, function, name)]
    loops = _loop_around(module, line) is not None
    near = [each.fact for each in incoming if _holds(each, line, bound, loops)]
    if near:
        return _distinct(near)
    return _from_lines(module, function, run, line, name)


def _holds(value: Incoming, line: int, bound: list[tuple[int, int]], loops: bool) -> bool:
    """Nothing is bound between where it was seen and the line."""
    if value.frame.resumed_at is None:
        return not any(loops or start < line for start, _ in bound)
    low, high = sorted((value.frame.resumed_at, line))
    return not any(low <= end and start <= high and start < high for start, end in bound)


def _from_lines(
    module: SourceModule, function: cst.FunctionDef, run: Run, line: int, name: str
) -> _Facts:
    """Of the assignments that may have come before the line; nothing if one is not known."""
    loop = _loop_around(module, line)
    around = _span(module, loop) if loop is not None else (0, 0)
    found: list[ValueFact] = []
    settled = False
    for node in reversed(_bindings(module, function, name)):
        start, end = _span(module, node)
        if settled or not (end < line or around[0] <= start <= around[1]):
            continue
        facts = [
            each.fact
            for each in graph_values(run).named.get(module.path, ())
            if each.name == name and start <= each.line <= end
        ]
        if not facts:
            return ()
        found += facts
        settled = end < line and _is_always_run(module, node, line)
    return _distinct(found) if settled else ()


def _is_always_run(module: SourceModule, node: cst.CSTNode, line: int) -> bool:
    """Whoever comes to the line has come by it."""
    block = module.parent(module.statement_of(node))
    here = module.statement_at(line)
    return here is not None and any(above is block for above in module.ancestors(here))


def _loop_around(module: SourceModule, line: int) -> cst.For | cst.While | None:
    here = module.statement_at(line)
    if here is None:
        return None
    if isinstance(here, (cst.For, cst.While)):
        return here
    found = module.around(here, cst.For, cst.While)
    return found if isinstance(found, (cst.For, cst.While)) else None


def _function_at(module: SourceModule, line: int) -> cst.FunctionDef | None:
    node = module.statement_at(line)
    if node is None:
        return None
    return node if isinstance(node, cst.FunctionDef) else module.function_of(node)


def _is_of(module: SourceModule, function: cst.FunctionDef, value: Incoming) -> bool:
    frame = value.frame
    first = min([module.line(function), *map(module.line, function.decorators)])
    named = frame.function == function.name.value
    return named and first <= frame.line <= module.line(function.name)


def _bindings(module: SourceModule, function: cst.FunctionDef, name: str) -> list[cst.CSTNode]:
    """What gives the name a value, in source order."""
    return _all_bindings(module, function).get(name, [])


@lru_cache(maxsize=256)
def _all_bindings(module: SourceModule, function: cst.FunctionDef) -> dict[str, list[cst.CSTNode]]:
    """By name. Many fixes ask about many names of one function."""
    found: dict[str, list[cst.CSTNode]] = {}
    for each in module.walk(function.body):
        for name in dict.fromkeys(module.code(target) for target in targets(each)):
            found.setdefault(name, []).append(each)
    return found


def _span(module: SourceModule, node: cst.CSTNode) -> tuple[int, int]:
    place = module.position(node)
    if isinstance(node, (cst.For, cst.AsName)):
        return place.start.line, place.start.line
    return place.start.line, place.end.line


def _distinct(facts: Iterator[ValueFact] | list[ValueFact]) -> _Facts:
    return tuple(dict.fromkeys(facts))


_DTYPES = {"builtins.bool": "bool", "builtins.int": "int64", "builtins.float": "float32"}


class ValueFacts(msgspec.Struct, frozen=True):
    """By file, line and name: what the name held when the line was about to run."""

    seen: dict[str, dict[int, dict[str, tuple[ValueFact, ...]]]] = {}
    shapes: dict[str, dict[int, tuple[dict[str, tuple[int, ...]], ...]]] = {}
    """By file and line: the shapes of the tensors that were there together, of distinct visits."""
    held: dict[str, dict[str, str]] = {}
    """By file and name: the dtype of the tensor that a change of the text gave a name in the place
    of a number; empty where it follows from the type of the number."""

    def at(self, file: str, line: int, name: str) -> tuple[ValueFact, ...]:
        """All distinct values seen; empty where the line was not reached or the name not there.
        `self.weight` and the like are names too: attributes one step deep are kept; and `RETURNED`
        is what a `return` of that line gave."""
        return self.as_held(file, name, self.seen.get(file, {}).get(line, {}).get(name, ()))

    def all_at(self, file: str, line: int) -> dict[str, tuple[ValueFact, ...]]:
        """By name, as `at` has it."""
        names = self.seen.get(file, {}).get(line, {})
        return {name: self.as_held(file, name, seen) for name, seen in names.items()}

    def as_held(self, file: str, name: str, seen: tuple[ValueFact, ...]) -> tuple[ValueFact, ...]:
        """What was seen before the change of the text, as the tensors that are there now."""
        dtype = self.held.get(file, {}).get(name)
        if dtype is None:
            return seen
        dtypes = {dtype or _DTYPES.get(fact.type, "") for fact in seen}
        return tuple(
            ValueFact("tensor", "torch.Tensor", dtype=each, shape=()) for each in sorted(dtypes)
        )

    def reached(self, file: str, line: int) -> bool:
        """Did the program come by?"""
        return line in self.seen.get(file, {})

    def together(
        self, file: str, line: int, one: str, other: str
    ) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The shapes that two names had at a time."""
        visits = self.shapes.get(file, {}).get(line, ())
        return {(each[one], each[other]) for each in visits if one in each and other in each}
