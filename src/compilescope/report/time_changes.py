"""What two versions' times say of each other, in a few words."""

from __future__ import annotations

from compilescope.record.fix_search import Spread
from compilescope.report.benchmark_words import TOO_NOISY
from compilescope.report.blocks import Style

_LEAST_ROUNDS = 3
"""Of either version. Chosen: two rounds of each lie apart by chance one time in three, three one
time in ten."""
_ENOUGH = 0.02
"""Share of the time before, below which a difference is none even where the rounds of both lie
apart. Chosen, not measured: a few rounds on one machine can't tell so little."""


def time_change(before: Spread | None, after: Spread | None) -> tuple[str, Style]:
    """Faster or slower, beyond what the rounds differ by. Empty where too few were taken."""
    if before is None or after is None or before.median <= 0:
        return "", "plain"
    if min(before.rounds, after.rounds) < _LEAST_ROUNDS:
        return "", "plain"
    apart = after.median / before.median - 1
    if after.low > before.high and apart > _ENOUGH:
        return f"{apart:.0%} slower", "bad"
    if after.high < before.low and apart < -_ENOUGH:
        return f"{-apart:.0%} faster", "good"
    if any(each.high - each.low > each.median for each in (before, after)):
        return TOO_NOISY, "warn"
    return "no clear difference", "dim"
