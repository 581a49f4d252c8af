"""Versions measured against the original: processes that wait at their steps and take turns.

They compile one after the other, or some at a time; then every round takes one turn of each, in an
order that rotates, so that what disturbs the machine disturbs all of them alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from compilescope.analysis.intervals import Ratio, ratio
from compilescope.processes.deadline import clock
from compilescope.tune.step_process import SettledVersion, StepFailed

T = TypeVar("T")
LEAST_TURNS = 6
"""From here on two order statistics hold a median with 95 % (`analysis.intervals`)."""
MOST_TURNS = 40
"""Chosen: what is not clear by then takes a quieter machine."""
TURN_MS = 100.0
"""A turn takes at least this long, where the program has steps enough. Chosen, as for a run of
`bench`: neither the clock nor the wait at a mark shows in it."""
_NARROW = 1.04
"""high / low of an interval that says enough. Chosen: a gain of a few percent can be told."""
_CLEAR = 1.15
"""Likewise where the interval lies above 1: it is what is told."""
WORTH = 1.02
"""A gain that is below it at best is none. Chosen: less than two runs of one program differ."""


@dataclass
class Contestant:
    """A version in a race."""

    settled: SettledVersion
    base_ms: list[float] = field(default_factory=list)
    """The original's turns of the same rounds."""
    own_ms: list[float] = field(default_factory=list)
    failed: str = ""

    @property
    def ratio(self) -> Ratio | None:
        return ratio([self.base_ms], [self.own_ms], paired=True) if self.own_ms else None

    @property
    def is_decided(self) -> bool:
        found = self.ratio
        if self.failed or self.settled.over:
            return True
        if found is None or found.low is None or found.high is None:
            return False
        if len(self.own_ms) < LEAST_TURNS:
            return False
        if found.high < WORTH:
            return True
        return found.high / found.low <= (_CLEAR if found.low > 1 else _NARROW)


def steps_of_turn(steady_ms: float, left: int | None) -> int:
    """`left` steps of the program, where that is known, are shared out over some rounds."""
    wanted = max(1, math.ceil(TURN_MS / max(steady_ms, 1e-3)))
    if left is None:
        return wanted
    return max(1, min(wanted, left // (2 * LEAST_TURNS)))


def run_race(
    base: SettledVersion,
    others: Sequence[Contestant],
    left: int | None,
    tick: Callable[[int], None],
    until: float = math.inf,
) -> None:
    """Until each is decided, the original's program has come to its end, or it is `until` by
    `clock`: what was measured by then counts."""
    turn = 0
    while turn < MOST_TURNS and clock() < until:
        waiting = [each for each in others if not each.is_decided]
        if not waiting or base.over:
            return
        tick(turn)
        # The same number of steps for all: a longer turn averages more noise away.
        steps = steps_of_turn(base.steady_ms, left)
        base_first = turn % 2 == 0
        base_ms = base.take_turn(steps) if base_first else None
        taken = [(each, _turn(each, steps)) for each in rotated(waiting, turn)]
        if not base_first:
            base_ms = base.take_turn(steps)
        if base_ms is None:
            return
        for each, own_ms in taken:
            if own_ms is not None:
                each.base_ms.append(base_ms)
                each.own_ms.append(own_ms)
        turn += 1


def _turn(each: Contestant, steps: int) -> float | None:
    try:
        return each.settled.take_turn(steps)
    except StepFailed as failure:
        each.failed = str(failure)
        return None


def rotated(every: Sequence[T], turn: int) -> list[T]:
    """In the order of this turn."""
    at = turn % len(every)
    return [*every[at:], *every[:at]]
