"""Saved numbers of an input are replaced by random ones from a seed, and those by ones."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate
from compilescope.model.written_graph import Fill, Input, WrittenGraph

_STEPS: tuple[tuple[Fill, Fill], ...] = (("saved", "random"), ("random", "ones"))


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    for before, after in _STEPS:
        names = [each.name for each in graph.inputs if each.tensor and each.fill == before]
        if len(names) > 1:
            plainer = _filled(graph, set(names), after)
            if (yield GraphCandidate(plainer)):
                graph = plainer
                continue
        for name in names:
            plainer = _filled(graph, {name}, after)
            if (yield GraphCandidate(plainer)):
                graph = plainer


def _filled(graph: WrittenGraph, names: set[str], fill: Fill) -> WrittenGraph:
    def filled(given: Input) -> Input:
        if given.name not in names:
            return given
        return replace(given, fill=fill, saved="")

    return replace(graph, inputs=tuple(filled(each) for each in graph.inputs))


PASS = Pass("numbers", 50, _propose)
