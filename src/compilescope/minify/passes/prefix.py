"""Drops the beginning of the graph: what it computed become inputs, with the numbers they had."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, without_ops


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
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


PASS = Pass("prefix", 20, _propose)
