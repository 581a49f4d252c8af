"""Inputs become plainer: no gradients, no dynamic sizes, contiguous."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate
from compilescope.model.written_graph import TensorKind, WrittenGraph

_PLAIN: dict[str, object] = {"grad": False, "dynamic": (), "stride": None}


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    for field, plain in _PLAIN.items():
        names = [
            each.name
            for each in graph.inputs
            if each.tensor is not None and getattr(each.tensor, field) != plain
        ]
        if len(names) > 1:
            plainer = _plain(graph, set(names), field)
            if (yield GraphCandidate(plainer)):
                graph = plainer
                continue
        for name in names:
            plainer = _plain(graph, {name}, field)
            if (yield GraphCandidate(plainer)):
                graph = plainer


def _plain(graph: WrittenGraph, names: set[str], field: str) -> WrittenGraph:
    def kind(tensor: TensorKind | None) -> TensorKind | None:
        return None if tensor is None else replace(tensor, **{field: _PLAIN[field]})

    inputs = tuple(
        replace(each, tensor=kind(each.tensor)) if each.name in names else each
        for each in graph.inputs
    )
    return replace(graph, inputs=inputs)


PASS = Pass("plain-tensors", 45, _propose)
