"""Makes calls plainer: fewer arguments, and literals in place of known numbers."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from msgspec.structs import replace

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.graph.candidate import GraphCandidate, cleaned, substituted
from compilescope.record.written_graph import Arg, Op, Ref, WrittenGraph


def _write_literals(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Known numbers, whether inputs or computed sizes, become literals where they are used."""
    graph = present.graph
    known = _known(graph)
    if len(known) > 1 and (yield GraphCandidate(_fixed(graph, known))):
        return
    for name in known:
        smaller = _fixed(graph, {name: known[name]})
        if smaller.ops and (yield GraphCandidate(smaller)):
            graph = smaller


def _known(graph: WrittenGraph) -> dict[str, Arg]:
    found: dict[str, Arg] = {each.name: each.value for each in graph.inputs if each.tensor is None}
    found.update((op.name, op.number) for op in graph.ops if op.number is not None)
    return found


def _fixed(graph: WrittenGraph, by: dict[str, Arg]) -> WrittenGraph:
    ops = tuple(op for op in graph.ops if op.name not in by)
    return cleaned(substituted(replace(graph, ops=ops), by))


def _drop_arguments(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Arguments of calls are dropped: named ones, the last one, and tensors that may be None."""
    graph = present.graph
    for name in [op.name for op in graph.ops]:
        tried: list[Op] = []
        while (shorter := _next(graph, name, tried)) is not None:
            tried.append(shorter)
            smaller = cleaned(_with(graph, shorter))
            if (yield GraphCandidate(smaller)):
                graph = smaller


def _next(graph: WrittenGraph, name: str, tried: list[Op]) -> Op | None:
    op = next((each for each in graph.ops if each.name == name), None)
    if op is None or op.kind == "size":
        return None
    return next((each for each in _shorter(op) if each not in tried), None)


def _shorter(op: Op) -> Iterator[Op]:
    for name in reversed(op.kwargs):
        rest = {each: arg for each, arg in op.kwargs.items() if each != name}
        yield replace(op, kwargs=rest)
    if len(op.args) > 1:
        yield replace(op, args=op.args[:-1])
    for at in range(len(op.args) - 1, 0, -1):
        if isinstance(op.args[at], Ref):
            yield replace(op, args=(*op.args[:at], None, *op.args[at + 1 :]))


def _with(graph: WrittenGraph, op: Op) -> WrittenGraph:
    ops = tuple(op if each.name == op.name else each for each in graph.ops)
    return replace(graph, ops=ops)


PASSES = (
    Pass("literals", 28, _write_literals),
    Pass("arguments", 38, _drop_arguments),
)
