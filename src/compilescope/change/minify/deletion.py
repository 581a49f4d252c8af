"""Finds which of many things can be deleted, by asking about runs of them instead of each.

Generators to `yield from` inside a pass. A thing that is needed costs one question, a run of n
things that are not needed about 2*log2(n), where deleting them one by one would cost n.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

C = TypeVar("C")
T = TypeVar("T")
_FIRST_PARTS = (1, 2, 4, 8)
"""The whole, its halves, quarters and eighths are tried before single things. Chosen: fifteen
questions at most, where they fail."""


def delete_runs(
    items: Sequence[T], without: Callable[[frozenset[T]], C | None]
) -> Generator[C, bool, frozenset[T]]:
    """Proposes candidates without ever more of `items`, in their order; returns what went.

    `without(gone)` makes the candidate, or None where these cannot go together.
    """
    left = list(items)
    gone: set[T] = set()

    def attempt(part: Sequence[T]) -> Generator[C, bool, bool]:
        candidate = without(frozenset(gone.union(part)))
        if candidate is None:
            return False
        taken = yield candidate
        if taken:
            gone.update(part)
        return taken

    for parts in _FIRST_PARTS:
        step = -(-len(left) // parts)
        if step < 2:
            break
        position = 0
        while position < len(left):
            if (yield from attempt(left[position : position + step])):
                del left[position : position + step]
            else:
                position += step
    position = 0
    while position < len(left):
        length = yield from _longest(left[position:], attempt)
        del left[position : position + length]
        position += 1  # What stands here now did not go with the run.
    return frozenset(gone)


def _longest(
    rest: Sequence[T], attempt: Callable[[Sequence[T]], Generator[C, bool, bool]]
) -> Generator[C, bool, int]:
    """How many of `rest`, from its start, can go: by doubling, then by halves of what is left."""
    if not (yield from attempt(rest[:1])):
        return 0
    good, bad = 1, len(rest) + 1
    while good * 2 < bad:
        if (yield from attempt(rest[: good * 2])):
            good *= 2
        else:
            bad = good * 2
    while good + 1 < bad:
        middle = (good + bad) // 2
        if (yield from attempt(rest[:middle])):
            good = middle
        else:
            bad = middle
    return good


def smallest_number(
    high: int, make: Callable[[int], C | None], low: int = 0
) -> Generator[C, bool, int]:
    """Proposes ever smaller numbers in place of `high`, never below `low`; returns the one left.

    The smallest first, then the ones just above it, then by halves.
    """

    def attempt(number: int) -> Generator[C, bool, bool]:
        candidate = make(number)
        return False if candidate is None else (yield candidate)

    bad = low - 1
    for number in range(low, min(low + 3, high)):
        if (yield from attempt(number)):
            return number
        bad = number
    while bad + 1 < high:
        middle = (bad + high) // 2
        if (yield from attempt(middle)):
            high = middle
        else:
            bad = middle
    return high
