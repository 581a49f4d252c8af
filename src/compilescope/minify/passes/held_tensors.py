"""Tensors that the module holds as attributes become inputs, as all the others are."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate
from compilescope.model.written_graph import WrittenGraph


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    held = [each.name for each in graph.inputs if each.attribute]
    if len(held) > 1 and (yield GraphCandidate(_passed(graph, set(held)))):
        return
    for name in held:
        plainer = _passed(graph, {name})
        if (yield GraphCandidate(plainer)):
            graph = plainer


def _passed(graph: WrittenGraph, names: set[str]) -> WrittenGraph:
    inputs = tuple(
        replace(each, attribute=False) if each.name in names else each for each in graph.inputs
    )
    return replace(graph, inputs=inputs)


PASS = Pass("held-tensors", 40, _propose)
