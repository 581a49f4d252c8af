"""Arguments of calls are dropped: named ones, the last one, and tensors that may be None."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, cleaned
from compilescope.model.written_graph import Op, Ref, WrittenGraph


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
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


PASS = Pass("arguments", 38, _propose)
