"""Drops operations: those that no output needs, whole blocks, runs of neighbours, one alone."""

from __future__ import annotations

from collections.abc import Generator

from compilescope.change.minify.deletion import delete_runs
from compilescope.change.minify.engine import Pass
from compilescope.change.minify.graph.candidate import (
    GraphCandidate,
    bypassed,
    has_effect,
    kinds,
    outputs_of,
    same_kind,
    with_outputs,
    without_dead_code,
    without_ops,
)
from compilescope.record.written_graph import WrittenGraph, names_used


def _drop_outputs(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Drops outputs with all that only they need: all but the last, else as many as can be."""
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


def _drop_dead_code(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Operations that no output needs are dropped; first all, else those without a side effect."""
    graph = present.graph
    bare = without_dead_code(graph)
    if not bare.ops or len(bare.ops) == len(graph.ops):
        return
    if not (yield GraphCandidate(bare)):
        cautious = without_dead_code(graph, has_effect)
        if len(bare.ops) < len(cautious.ops) < len(graph.ops):
            yield GraphCandidate(cautious)


_LEAST = 3
"""Shorter ones are left to other passes. Chosen: with two, the pass over single statements is as
quick."""


def _drop_blocks(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Drops whole blocks: their users get an earlier value of the same shape, dtype and device.

    Of a stack of equal layers one remains.
    """
    graph = present.graph
    length = len(graph.ops) // 2
    while length >= _LEAST:
        begin = 0
        while begin + length < len(graph.ops):
            found = _block(graph, begin, length)
            smaller = found and bypassed(graph, *found)
            if smaller and smaller.ops and (yield GraphCandidate(smaller)):
                graph = smaller
            else:
                begin += length
        length //= 2


def _block(graph: WrittenGraph, begin: int, length: int) -> tuple[str, str] | None:
    """The last value of a block of about that length, and one like it from before the block."""
    known = kinds(graph)
    before = [op.name for op in graph.ops[:begin]] or [each.name for each in graph.inputs]
    for end in graph.ops[begin + length - 1 : begin : -1]:
        for source in reversed(before[-length:]):
            if same_kind(known.get(source), end.tensor):
                return end.name, source
    return None


def _drop_operations(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Operations are dropped, in runs of neighbours; their results become inputs."""

    def without(gone: frozenset[str]) -> GraphCandidate | None:
        smaller = without_ops(present.graph, gone)
        return None if smaller is None else GraphCandidate(smaller)

    if len(present.graph.ops) > 1:
        yield from delete_runs([op.name for op in present.graph.ops], without)


def _bypass_operations(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Replaces an operation by one of its own inputs that has the same shape, dtype and device."""
    graph = present.graph
    for name in [op.name for op in reversed(graph.ops)]:
        for source in _alike(graph, name):
            if len(graph.ops) == 1:
                return
            smaller = bypassed(graph, name, source)
            if smaller.ops and (yield GraphCandidate(smaller)):
                graph = smaller
                break


def _alike(graph: WrittenGraph, name: str) -> list[str]:
    op = next((each for each in graph.ops if each.name == name), None)
    if op is None:
        return []
    known = kinds(graph)
    used = dict.fromkeys(names_used(op))
    return [each for each in used if same_kind(known.get(each), op.tensor)]


PASSES = (
    Pass("outputs", 12, _drop_outputs),
    Pass("dead-code", 14, _drop_dead_code),
    Pass("blocks", 25, _drop_blocks),
    Pass("operations", 30, _drop_operations),
    Pass("bypass", 34, _bypass_operations),
)
