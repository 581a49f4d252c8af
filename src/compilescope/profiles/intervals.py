"""Sets of times: sorted, disjoint pairs of a beginning and an end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def union(pairs: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for start, end in sorted(pair for pair in pairs if pair[1] > pair[0]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def length(pairs: Iterable[Interval]) -> float:
    """Of disjoint ones."""
    return sum(end - start for start, end in pairs)


def within(pairs: Iterable[Interval], window: Interval) -> list[Interval]:
    """What of them lies in the window."""
    cut = ((max(start, window[0]), min(end, window[1])) for start, end in pairs)
    return [(start, end) for start, end in cut if end > start]


def without(pairs: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """What of the ones no other has; both sorted and disjoint."""
    left: list[Interval] = []
    first = 0
    for start, end in pairs:
        at = start
        while first < len(taken) and taken[first][1] <= start:
            first += 1
        index = first
        while index < len(taken) and taken[index][0] < end:
            if taken[index][0] > at:
                left.append((at, taken[index][0]))
            at = max(at, taken[index][1])
            index += 1
        if at < end:
            left.append((at, end))
    return left
