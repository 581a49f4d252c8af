"""Two inputs of the same shape, dtype and device become one."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, cleaned, same_kind, substituted
from compilescope.model.written_graph import Ref, WrittenGraph


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    for late in [each.name for each in reversed(present.graph.inputs)]:
        early = _alike(graph, late)
        if early:
            fewer = cleaned(substituted(graph, {late: Ref(early)}))
            if (yield GraphCandidate(fewer)):
                graph = fewer


def _alike(graph: WrittenGraph, name: str) -> str:
    """The first input of the same kind that stands before it."""
    own = graph.input_named(name)
    for each in graph.inputs:
        if own is None or each.name == name:
            return ""
        if same_kind(each.tensor, own.tensor) and each.attribute == own.attribute:
            return each.name
    return ""


PASS = Pass("merged-inputs", 36, _propose)
