"""Outputs are dropped, with all that only they need: all but the last, else as many as can be."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.deletion import delete_runs
from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import (
    GraphCandidate,
    has_effect,
    outputs_of,
    with_outputs,
    without_dead_code,
)


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    names = outputs_of(present.graph)
    order = {op.name: number for number, op in enumerate(present.graph.ops)}
    last = max(names, key=lambda name: order.get(name, -1), default="")

    def returning(kept: list[str]) -> GraphCandidate:
        return GraphCandidate(without_dead_code(with_outputs(present.graph, kept), has_effect))

    if len(names) > 1:
        # What was cut at its end shows it there, most of the time.
        if (yield returning([last])):
            return
        rest = [name for name in names if name != last]
        yield from delete_runs(
            rest,
            lambda gone: returning([name for name in names if name not in gone]),
        )


PASS = Pass("outputs", 12, _propose)
