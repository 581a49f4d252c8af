"""Drops the end of the graph: by halves, down to the first operations that still fail."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import (
    GraphCandidate,
    cleaned,
    leaves,
    outputs_of,
    with_outputs,
)
from compilescope.model.written_graph import WrittenGraph


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    bad, good = 0, len(graph.ops)
    while good - bad > 1:
        middle = (bad + good) // 2
        taken = yield GraphCandidate(_first(graph, middle))
        if taken:
            good = middle
        else:
            bad = middle


def _first(graph: WrittenGraph, count: int) -> WrittenGraph:
    """All that is computed and not used is returned: the culprit may be any of it."""
    shorter = replace(graph, ops=graph.ops[:count])
    there = {op.name for op in shorter.ops}
    ends = [name for name in outputs_of(graph) if name in there]
    ends += [name for name in leaves(shorter) if name not in ends]
    return cleaned(with_outputs(shorter, ends))


PASS = Pass("suffix", 10, _propose)
