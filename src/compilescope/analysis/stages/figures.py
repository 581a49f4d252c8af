"""The figures of a graph at each of its stages."""

from __future__ import annotations

import msgspec

from compilescope.analysis.stages.reader import StageReader
from compilescope.analysis.stages.staged_graphs import Stage, StagedGraph
from compilescope.analysis.stages.tensors import portable_graphs
from compilescope.graphs.statistics import Amount, GraphStatistics, graph_statistics
from compilescope.model.graph import Graph

_COUNTED = ("dynamo", "aot_forward", "aot_backward", "aot_inference")


class GraphFigures(msgspec.Struct, frozen=True):
    """What is known of a graph in numbers."""

    caught: GraphStatistics | None
    """As Dynamo caught it; None where its text is missing or there was too much to read."""
    stages: tuple[tuple[Stage, GraphStatistics | None], ...]
    forward: tuple[GraphStatistics, ...]
    """Where the forward pass's operations are counted: a graph may be cut before it is compiled."""
    backward: tuple[GraphStatistics, ...]

    @property
    def flops(self) -> Amount | None:
        """Of both passes; None where nothing could be counted."""
        parts = [part.flops for part in (*self.forward, *self.backward)]
        return sum(parts, Amount()) if parts else None


def graph_figures(graph: StagedGraph, reader: StageReader) -> GraphFigures:
    stages = tuple(
        (stage, _statistics(stage, graph, reader))
        for stage in graph.stages
        if stage.kind in _COUNTED
    )
    caught = next((known for stage, known in stages if stage.kind == "dynamo"), None)
    # Below Dynamo every product is an op of its own; above, some hide in composite ones.
    forward = _all_of(stages, "aot_forward", "aot_inference")
    if not forward and caught is not None:
        forward = (caught,)
    return GraphFigures(caught, stages, forward, _all_of(stages, "aot_backward"))


def _all_of(
    stages: tuple[tuple[Stage, GraphStatistics | None], ...], *kinds: str
) -> tuple[GraphStatistics, ...]:
    """Empty where one of them is not known: a part must not pass for the whole."""
    found = [known for stage, known in stages if stage.kind in kinds]
    return tuple(known for known in found if known is not None) if None not in found else ()


def _statistics(stage: Stage, graph: StagedGraph, reader: StageReader) -> GraphStatistics | None:
    printed = reader.affordable(stage)
    if printed is None or not printed.nodes:
        return None
    graphs = portable_graphs(printed)
    if stage.kind == "dynamo":
        graphs[0] = _with_sources(graphs[0], reader.caught(graph))
    return graph_statistics(graphs, printed.returned)


def _with_sources(graph: Graph, caught: Graph | None) -> Graph:
    """The text does not tell parameters from arguments; what capture kept does."""
    sources = {node.name: node.source for node in caught.nodes if node.source} if caught else {}
    nodes = (
        msgspec.structs.replace(node, source=sources[node.name]) if node.name in sources else node
        for node in graph.nodes
    )
    return Graph(tuple(nodes))
