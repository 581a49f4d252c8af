"""What the reducer shrinks when it shrinks a graph, and the edits of it that several passes share.

The size orders candidates: the reducer takes only a smaller one. The text tells them apart.

A value whose operation is dropped becomes an input, with the numbers that it had in the program.
"""

from __future__ import annotations

import keyword
import math
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from compilescope.change.minify.script.graph_script import graph_classes, input_source
from compilescope.record.written_graph import (
    Arg,
    Code,
    Input,
    Items,
    Op,
    Ref,
    TensorKind,
    WrittenDict,
    WrittenGraph,
    mapped,
    mapped_op,
    names_in,
    names_used,
)

_USUAL = ("float32", "int64", "bool")
_FILLS = {"saved": 2, "random": 1, "ones": 0, "zeros": 0}


@dataclass(frozen=True)
class GraphCandidate:
    """Fewer operations first, then fewer inputs and outputs, then plainer and smaller ones."""

    graph: WrittenGraph

    def size(self) -> tuple[int, ...]:
        return self._size

    def text(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        given = [input_source(each) for each in self.graph.inputs if not each.attribute]
        return "\n".join([*graph_classes(self.graph, notes=False), *given])

    @cached_property
    def _size(self) -> tuple[int, ...]:
        graph = self.graph
        tensors = [each for each in graph.inputs if each.tensor is not None]
        kinds = [each.tensor for each in tensors if each.tensor is not None]
        return (
            op_count(graph),
            len(graph.inputs),
            len(outputs_of(graph)),
            sum(each.attribute for each in graph.inputs),
            sum(kind.grad + len(kind.dynamic) for kind in kinds),
            sum(kind.dtype not in _USUAL for kind in kinds) + _odd_dtypes(graph),
            sum(kind.stride is not None for kind in kinds),
            sum(_FILLS[each.fill] for each in tensors),
            sum(math.prod(kind.shape) for kind in kinds),
            sum(_arguments(op) for op in _all_ops(graph)),
            len(self._text),
            zlib.crc32(self._text.encode("utf-8", "surrogatepass")),
        )


def op_count(graph: WrittenGraph) -> int:
    """Those of inner graphs count too."""
    return sum(1 for _ in _all_ops(graph))


def _all_ops(graph: WrittenGraph) -> Iterator[Op]:
    yield from graph.ops
    for inner in graph.graphs.values():
        yield from _all_ops(inner)


def _odd_dtypes(graph: WrittenGraph) -> int:
    args = (arg for op in _all_ops(graph) for arg in (*op.args, *op.kwargs.values()))
    named = [arg.text for arg in args if isinstance(arg, Code)]
    floats = [text for text in named if text.startswith(("torch.float", "torch.bfloat"))]
    return sum(text != "torch.float32" for text in floats)


def _arguments(op: Op) -> int:
    """How much there is to read in a call."""

    def weight(arg: object) -> int:
        if isinstance(arg, Items):
            return 1 + sum(map(weight, arg.items))
        if isinstance(arg, WrittenDict):
            return 1 + sum(weight(k) + weight(v) for k, v in arg.pairs)
        return 0 if arg is None else 1

    return sum(map(weight, op.args)) + sum(1 + weight(arg) for arg in op.kwargs.values())


_PLAIN_SEEDS = 1000
"""Seeds of former operations start here: those of inputs are their positions."""


def outputs_of(graph: WrittenGraph) -> list[str]:
    """The values that are returned, each once."""
    return list(dict.fromkeys(names_in(graph.output)))


def with_outputs(graph: WrittenGraph, names: Iterable[str]) -> WrittenGraph:
    return replace(graph, output=Items("tuple", tuple(Ref(name) for name in names)))


def users(graph: WrittenGraph) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = {}
    for op in graph.ops:
        for name in dict.fromkeys(names_used(op)):
            found.setdefault(name, []).append(op)
    return found


def leaves(graph: WrittenGraph) -> list[str]:
    """Tensors that no operation uses: what a graph without outputs could return."""
    used = users(graph)
    return [op.name for op in graph.ops if op.name not in used and op.tensor is not None]


def without_ops(graph: WrittenGraph, gone: Collection[str]) -> WrittenGraph | None:
    """The rest, with inputs in place of what went; None where that has no input to stand for it."""
    missing = _with_parts(graph, set(gone))
    kept = [op for op in graph.ops if op.name not in missing]
    if not kept:
        return None
    needed = {name for op in kept for name in names_used(op)} & missing.keys()
    literals: dict[str, Arg] = {}
    added: list[Input] = []
    for op in graph.ops:
        if op.name not in needed:
            continue
        if op.number is not None:
            literals[op.name] = op.number
        elif op.tensor is not None:
            added.append(_input_for(op, _PLAIN_SEEDS + len(graph.inputs) + len(added)))
        else:
            return None
    outputs = [name for name in outputs_of(graph) if name not in missing]
    smaller = replace(graph, inputs=(*graph.inputs, *added), ops=tuple(kept))
    # What only the missing ones used would be dead code otherwise.
    used = users(graph)
    outputs += [name for name in leaves(smaller) if name in used and name not in outputs]
    return cleaned(substituted(with_outputs(smaller, outputs), literals))


def _with_parts(graph: WrittenGraph, gone: set[str]) -> dict[str, None]:
    """What takes a tuple apart goes with the tuple: its parts can be inputs, the tuple cannot."""
    several = {op.name for op in graph.ops if op.tensor is None and op.number is None}
    found = dict.fromkeys(gone)
    for op in graph.ops:
        apart = op.target == "operator.getitem" and op.args and isinstance(op.args[0], Ref)
        if apart and op.args[0].name in several and op.args[0].name in found:  # type: ignore[union-attr]
            found[op.name] = None
    return found


def _input_for(op: Op, seed: int) -> Input:
    """An input with the numbers that the operation gave."""
    assert op.tensor is not None
    # Autograd has no part in what is computed outside.
    kind = replace(op.tensor, grad=op.tensor.grad and is_float(op.tensor))
    return Input(op.name, kind, fill="saved", saved=op.name, seed=seed)


def is_float(kind: TensorKind) -> bool:
    return kind.dtype.startswith(("float", "bfloat", "complex"))


def substituted(graph: WrittenGraph, by: Mapping[str, Arg]) -> WrittenGraph:
    """Each name of `by` replaced wherever it is used."""
    if not by:
        return graph

    def change(arg: Arg) -> Arg:
        return by.get(arg.name, arg) if isinstance(arg, Ref) else arg

    ops = tuple(mapped_op(op, change) for op in graph.ops)
    output = mapped(graph.output, change)
    return replace(graph, ops=ops, output=output)


def cleaned(graph: WrittenGraph) -> WrittenGraph:
    """Without inputs, inner graphs and modules that nothing uses, and inputs that are returned."""
    inputs = {each.name for each in graph.inputs}
    kept = [name for name in outputs_of(graph) if name not in inputs]
    graph = with_outputs(graph, kept)
    used = {name for op in graph.ops for name in names_used(op)}
    called = {op.target for op in graph.ops if op.kind == "module"}
    return replace(
        graph,
        inputs=tuple(each for each in graph.inputs if each.name in used),
        graphs={name: inner for name, inner in graph.graphs.items() if name in used},
        modules={name: made for name, made in graph.modules.items() if name in called},
    )


def without_dead_code(
    graph: WrittenGraph, is_needed: Callable[[Op], bool] = lambda op: False
) -> WrittenGraph:
    """Without operations that no output needs, but for those that are needed all the same."""
    needed = set(outputs_of(graph))
    kept: list[Op] = []
    for op in reversed(graph.ops):
        if op.name in needed or is_needed(op):
            needed.update(names_used(op))
            kept.append(op)
    return cleaned(replace(graph, ops=tuple(reversed(kept))))


def has_effect(op: Op) -> bool:
    """May it do more than return a value? In-place operations, modes that go on and off."""
    name = op.target.rsplit(".", 1)[-1]
    if op.kind == "method":
        return name.endswith("_") and not name.endswith("__")
    if op.target.startswith("operator."):
        return name == "setitem" or name in _IN_PLACE
    returns_nothing = op.tensor is None and op.number is None
    return (name.endswith("_") and not name.endswith("__")) or (
        returns_nothing and name.lstrip("_").startswith(("enter", "exit", "set", "assert"))
    )


_IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor")


def same_kind(left: TensorKind | None, right: TensorKind | None) -> bool:
    if left is None or right is None:
        return False
    return (left.shape, left.dtype, left.device) == (right.shape, right.dtype, right.device)


def kinds(graph: WrittenGraph) -> dict[str, TensorKind]:
    """What each tensor is."""
    found = {each.name: each.tensor for each in graph.inputs if each.tensor is not None}
    found.update((op.name, op.tensor) for op in graph.ops if op.tensor is not None)
    return found


_NOISE = re.compile(r"^l_|_(modules|parameters|buffers|stack0)(?=_)|(?<!_)_+$")
_SELF = re.compile(r"^(self|fn|args|kwargs|held)_+(?=[a-zA-Z])")
_LONGEST = 30
"""Letters of a name that is made from another. Chosen: lines of the script stay short."""


def readable(graph: WrittenGraph) -> WrittenGraph:
    """The same graph with shorter names for inputs, all different."""
    taken = {op.name for op in graph.ops} | {"self", "torch", "tensor", *graph.graphs}
    taken |= set(graph.imports)
    names: dict[str, str] = {}
    for each in graph.inputs:
        short = _short(each.name)
        fresh, number = short, 1
        while fresh in taken or keyword.iskeyword(fresh):
            number += 1
            fresh = f"{short}_{number}"
        taken.add(fresh)
        names[each.name] = fresh
    refs: dict[str, Arg] = {old: Ref(new) for old, new in names.items()}
    renamed = tuple(replace(each, name=names[each.name]) for each in graph.inputs)
    return replace(substituted(graph, refs), inputs=renamed)


def _short(name: str) -> str:
    short = name.strip("_")
    while True:
        less = _SELF.sub("", _NOISE.sub("", short)).strip("_")
        if less == short or not less or not less.isidentifier():
            break
        short = less
    short = short[-_LONGEST:].strip("_") if len(short) > _LONGEST else short
    return short if short.isidentifier() else f"input_{short}"


def bypassed(graph: WrittenGraph, name: str, source: str) -> WrittenGraph:
    """`source` wherever `name` was used."""
    changed = cleaned(substituted(graph, {name: Ref(source)}))
    return without_dead_code(changed, has_effect)
