"""Which runs a page of many runs reads: the newest of a kind, so many and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from compilescope.dashboard.runs.rows import RunRow
from compilescope.report.places import count

MOST_RUNS = 50
"""Chosen: each is read while the reader waits; the page says how many there are."""


class NewestRuns(NamedTuple):
    rows: tuple[RunRow, ...]
    """Newest first."""
    of: int
    """How many there are."""
    pending: int
    """Runs that may belong to them: what they are has not been read yet."""

    @property
    def note(self) -> str:
        """What a reader must know of those that are left out."""
        told = []
        if self.of > len(self.rows):
            told.append(f"The newest {len(self.rows)} of {self.of} runs.")
        if self.pending:
            told.append(f"{count(self.pending, 'more run is', 'more runs are')} still being read.")
        return " ".join(told)


def newest(rows: Sequence[RunRow], wanted: Callable[[RunRow], bool]) -> NewestRuns:
    found = [row for row in rows if wanted(row)]
    pending = sum(row.pending for row in rows) - sum(row.pending for row in found)
    return NewestRuns(tuple(found[:MOST_RUNS]), len(found), pending)
