"""Shortens the graph from its end and from its beginning: most of a graph goes here."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.graph.candidate import (
    GraphCandidate,
    cleaned,
    leaves,
    outputs_of,
    with_outputs,
    without_ops,
)
from compilescope.record.written_graph import WrittenGraph


def _drop_end(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Drops the end of the graph: by halves, down to the first operations that still fail."""
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


def _drop_beginning(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Drops the beginning of the graph: its results become inputs, with the numbers they had."""
    graph = present.graph
    good, bad = 0, len(graph.ops)
    # Where the end was cut first, the culprit is the last operation as a rule.
    cut = bad - 1
    while good < cut:
        shorter = without_ops(graph, [op.name for op in graph.ops[:cut]])
        taken = shorter is not None and (yield GraphCandidate(shorter))
        if taken:
            good = cut
        else:
            bad = cut
        cut = (good + bad) // 2


PASSES = (
    Pass("suffix", 10, _drop_end),
    Pass("prefix", 20, _drop_beginning),
)
