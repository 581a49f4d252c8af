"""How long a search may take, by the clock; a part of it is kept for the proof of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from compilescope.base.processes.deadline import Deadline
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.record.fix_search import FixAttempt

SPENT = "not tried: the time budget ran out"
CUT = "not all fixes for it were tried: the time budget ran out"
OUT_OF_TIME = frozenset({SPENT, CUT})
_ROOM = 1.3
"""A process may take longer than the longest so far. Chosen: how well budgets are kept with it is
shown by benchmarks/time_limits.py."""
Stage = Literal["searching", "joining", "last look"]


class Budget:
    """Shares out the time of one search. What is over time raises `OutOfTime`."""

    def __init__(self, deadline: Deadline, bench: Workbench, following: int = 0) -> None:
        """`following`: so many fresh processes come after the search, within the same time."""
        self._deadline = deadline
        self._bench = bench
        self._following = following
        self._stage: Stage = "last look"
        self.found = False
        """A fix was verified: what puts it together with others needs time too."""
        self.replays_last = False
        """Does the last look compile the replays once more, with Inductor?"""

    @property
    def seconds(self) -> float | None:
        return self._deadline.seconds

    @property
    def is_spent(self) -> bool:
        """Is there no more time than is needed to hand out what there is?"""
        return self._deadline.is_over

    def whole(self) -> AbstractContextManager[None]:
        """Around all of the search."""
        return self._deadline.leaving(self.reserve_s)

    def searching(self) -> AbstractContextManager[None]:
        """What runs within the block leaves time to put fixes together and to prove the whole."""
        return self._in("searching")

    def joining(self) -> AbstractContextManager[None]:
        """What runs within the block leaves time for the last look, in a fresh process."""
        return self._in("joining")

    def allows(self, runs: int) -> bool:
        """Is there time for so many runs of the program?"""
        return _ROOM * runs * self._bench.watch_s < self._deadline.left_s

    @contextmanager
    def _in(self, stage: Stage) -> Iterator[None]:
        before, self._stage = self._stage, stage
        try:
            yield
        finally:
            self._stage = before

    def reserve_s(self) -> float:
        """What the present stage has to leave, by what its kind of process has taken so far."""
        bench = self._bench
        fresh = bench.start_s + bench.watch_s
        if self._stage == "searching" and not self.found:
            return 0.0  # Where nothing is found, nothing follows.
        seconds = self._following * fresh
        if self._stage != "last look":
            seconds += fresh + (bench.watch_s if self.replays_last else 0.0)
        if self._stage == "searching":
            seconds += bench.watch_s + bench.probe_s
        return _ROOM * seconds


def not_tried(attempts: Sequence[FixAttempt], budget: Budget, cut: Sequence[str]) -> list[str]:
    """What there was no time for, in sentences. `cut`: what the budget ended."""
    late = [each for each in attempts if each.reason in OUT_OF_TIME]
    skipped = len({each.fingerprint for each in late})
    words = f"The time budget of {budget.seconds or 0:g} s"
    notes = [f"{words} ended {what}." for what in cut]
    if skipped:
        causes = "1 cause was" if skipped == 1 else f"{skipped} causes were"
        notes.append(f"{words} ran out: {causes} not fully tried.")
    return notes
