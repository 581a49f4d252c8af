"""Known numbers, whether inputs or computed sizes, become literals where they are used."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, cleaned, substituted
from compilescope.model.written_graph import Arg, WrittenGraph


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
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


PASS = Pass("literals", 28, _propose)
