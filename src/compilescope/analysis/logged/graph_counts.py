"""How many graphs a run has, and how many would do: the one rule behind every view that says so."""

from __future__ import annotations

import msgspec

from compilescope.analysis.logged.graph import LoggedGraph
from compilescope.analysis.logged.graphs import expected_graphs, logged_graphs
from compilescope.model.bodies import GraphCaptured, GraphCompiled
from compilescope.model.run import Run
from compilescope.source.spots import Sources


class GraphCount(msgspec.Struct, frozen=True):
    """The number of graphs, as it is and as it should be."""

    graphs: int
    expected: int


def graph_count(run: Run, sources: Sources | None = None) -> GraphCount:
    """Of a capture as of a log: those of the last compiler that tells of its graphs."""
    if not run.count(GraphCompiled):
        graphs = sum(body.stage == "dynamo" for _, body in run.of(GraphCaptured))
        expected = expected_graphs(run, [])
        if expected or not graphs:
            return GraphCount(graphs, expected)
    return count_of(run, logged_graphs(run, sources))


def count_of(run: Run, graphs: list[LoggedGraph]) -> GraphCount:
    return GraphCount(len(graphs), expected_graphs(run, graphs))
