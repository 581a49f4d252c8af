"""Operations are dropped, in runs of neighbours; their results become inputs."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.deletion import delete_runs
from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, without_ops


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    def without(gone: frozenset[str]) -> GraphCandidate | None:
        smaller = without_ops(present.graph, gone)
        return None if smaller is None else GraphCandidate(smaller)

    if len(present.graph.ops) > 1:
        yield from delete_runs([op.name for op in present.graph.ops], without)


PASS = Pass("operations", 30, _propose)
