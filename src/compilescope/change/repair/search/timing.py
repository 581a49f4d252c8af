"""How long the program takes with what was kept: with all of it, and with each fix alone."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from compilescope.base.processes.deadline import OutOfTime
from compilescope.change.repair.search.attempts import SearchStep
from compilescope.change.repair.search.budget import Budget
from compilescope.change.repair.search.options import SearchOptions
from compilescope.change.repair.search.try_log import TryLog
from compilescope.change.repair.trials.verifier import measure
from compilescope.change.repair.trials.version import Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.record.fix_search import Times

_ROUNDS, _ROUNDS_ALONE = 3, 2
"""Of timing: all fixes together, and each alone. Chosen: a round runs both versions once more, and
three are the fewest of which one is in the middle."""
_COLD_ROUNDS, _COLD_ROUNDS_ALONE = 2, 0
"""Of these with empty caches, which is most of what timing takes: two are the fewest that can be
apart from each other. Of each fix alone only a warm call is told."""


def measure_steps(
    bench: Workbench,
    options: SearchOptions,
    log: TryLog,
    budget: Budget,
    steps: Sequence[SearchStep],
    known: Times | None,
) -> Times | None:
    """Of all together, unless that is known; and of each alone, where there are several and
    there is time."""

    def measured(before: Version, after: Version, rounds: int, cold: int) -> Times | None:
        """None where there is no time for it."""
        if not budget.allows(2 * rounds):
            return None
        try:
            return measure(bench, before, after, rounds=rounds, cold=cold)
        except OutOfTime:
            return None

    kept = [(before, tried) for before, after in pairwise(steps) for tried in after.kept]
    options.progress("timing", 0, len(kept))
    times = known or measured(Version(), steps[-1].version, _ROUNDS, _COLD_ROUNDS)
    for number, (before, tried) in enumerate(kept, 1):
        alone = times
        if len(kept) > 1 and times is not None and times.warm_call is not None:
            options.progress("timing", number, len(kept))
            version = before.version.with_patch(tried.patch)
            alone = measured(before.version, version, _ROUNDS_ALONE, _COLD_ROUNDS_ALONE)
        if alone is not None:
            log.time(tried, alone)
    return times
