"""Operations that no output needs are dropped; first all, else those without a side effect."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, has_effect, without_dead_code


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    bare = without_dead_code(graph)
    if not bare.ops or len(bare.ops) == len(graph.ops):
        return
    if not (yield GraphCandidate(bare)):
        cautious = without_dead_code(graph, has_effect)
        if len(bare.ops) < len(cautious.ops) < len(graph.ops):
            yield GraphCandidate(cautious)


PASS = Pass("dead-code", 14, _propose)
