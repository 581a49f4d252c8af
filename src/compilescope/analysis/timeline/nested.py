"""Nests stretches of time into one another.

Invariant: each lies within its parent, whatever the clocks said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


class TimeStretch(msgspec.Struct, Generic[T]):
    """Something that took time, and where it lies among the others."""

    start_ns: int
    end_ns: int
    subject: T
    rank: int = 0
    """Of two that take exactly the same time, the lower one encloses the other."""
    depth: int = 0
    parent: int | None = None
    """Index of the one that it lies in."""
    self_ns: int = 0
    """Its time outside those within it."""


def nested(stretches: Iterable[TimeStretch[T]]) -> list[TimeStretch[T]]:
    """In order of start, outer ones first, each within its parent and after its elder siblings.

    Clocks are set back at times, and two sources may disagree by microseconds: a stretch that
    begins within another and ends after it is cut at that one's end.
    """
    ordered = sorted(stretches, key=lambda s: (s.start_ns, -s.end_ns, s.rank))
    open_ones: list[int] = []
    for number, stretch in enumerate(ordered):
        stretch.end_ns = max(stretch.end_ns, stretch.start_ns)
        while open_ones and not _holds(ordered[open_ones[-1]], stretch):
            open_ones.pop()
        if open_ones:
            parent = ordered[open_ones[-1]]
            stretch.parent = open_ones[-1]
            stretch.end_ns = min(stretch.end_ns, parent.end_ns)
        stretch.depth = len(open_ones)
        stretch.self_ns = stretch.end_ns - stretch.start_ns
        if stretch.parent is not None:
            ordered[stretch.parent].self_ns -= stretch.self_ns
        open_ones.append(number)
    return ordered


def _holds(outer: TimeStretch[T], inner: TimeStretch[T]) -> bool:
    if inner.start_ns < outer.end_ns:
        return True
    # One without length lies in another at its very end only if that has no length either.
    return inner.start_ns == outer.start_ns == outer.end_ns == inner.end_ns
