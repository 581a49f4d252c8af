"""Whole blocks are dropped: their users get an earlier value of the same shape, dtype and device.

Of a stack of equal layers one remains.
"""

from __future__ import annotations

from collections.abc import Generator

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, bypassed, kinds, same_kind
from compilescope.model.written_graph import WrittenGraph

_LEAST = 3
"""Shorter ones are left to other passes. Chosen: with two, the pass over single statements is as
quick."""


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
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


PASS = Pass("blocks", 25, _propose)
