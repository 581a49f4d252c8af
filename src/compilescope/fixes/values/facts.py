"""What the values of a function's variables were when the original program ran it eagerly.

Facts guide a fix to what may hold; that it does hold is for the verification to show.
"""

from __future__ import annotations

import msgspec

from compilescope.model.values import RETURNED as RETURNED
from compilescope.model.values import ValueFact as ValueFact


class ValueFacts(msgspec.Struct, frozen=True):
    """By file, line and name: what the name held when the line was about to run."""

    seen: dict[str, dict[int, dict[str, tuple[ValueFact, ...]]]] = {}
    shapes: dict[str, dict[int, tuple[dict[str, tuple[int, ...]], ...]]] = {}
    """By file and line: the shapes of the tensors that were there together, of distinct visits."""

    def at(self, file: str, line: int, name: str) -> tuple[ValueFact, ...]:
        """All distinct values seen; empty where the line was not reached or the name not there.
        `self.weight` and the like are names too: attributes one step deep are kept; and `RETURNED`
        is what a `return` of that line gave."""
        return self.seen.get(file, {}).get(line, {}).get(name, ())

    def reached(self, file: str, line: int) -> bool:
        """Did the program come by?"""
        return line in self.seen.get(file, {})

    def together(
        self, file: str, line: int, one: str, other: str
    ) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The shapes that two names had at a time."""
        visits = self.shapes.get(file, {}).get(line, ())
        return {(each[one], each[other]) for each in visits if one in each and other in each}
