"""An operation is replaced by one of its own inputs that has the same shape, dtype and device."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import (
    GraphCandidate,
    bypassed,
    kinds,
    same_kind,
)
from compilescope.model.written_graph import WrittenGraph, names_used


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    for name in [op.name for op in reversed(graph.ops)]:
        for source in _alike(graph, name):
            if len(graph.ops) == 1:
                return
            smaller = bypassed(graph, name, source)
            if smaller.ops and (yield GraphCandidate(smaller)):
                graph = smaller
                break


def _alike(graph: WrittenGraph, name: str) -> list[str]:
    op = next((each for each in graph.ops if each.name == name), None)
    if op is None:
        return []
    known = kinds(graph)
    used = dict.fromkeys(names_used(op))
    return [each for each in used if same_kind(known.get(each), op.tensor)]


PASS = Pass("bypass", 34, _propose)
