"""Compares two replayed runs as a whole: how often regions are called, and how large results are.

`astray` compares two versions, `differs_from_itself` one version with itself: what differs without
any change proves nothing about a fix.
"""

from __future__ import annotations

import math

from compilescope.repair.trials.replays import Judge, Replays, same_values
from compilescope.repair.trials.watched import ReplayedRun

APART = 0.02
"""Relative. Of calls that are not replayed only sums of absolute values are known, and the rounding
of all steps so far is in them. benchmarks/fix_limits.py measures how far right patches drift."""


def astray(before: ReplayedRun, after: ReplayedRun) -> str:
    """Where the calls of regions, also those that were not recorded, are not as many or give
    something of another size; empty where they do not."""
    for number, name in enumerate(before.record["regions"]):
        old, new = (p.record["trails"].get(str(number), []) for p in (before, after))
        if len(old) != len(new):
            return f"{name} is called {len(new)} times; the original calls it {len(old)} times"
        for call, (a, b) in enumerate(zip(old, new, strict=True), 1):
            if _gap(a, b) > APART:
                words = (
                    f"call {call} of {name} returns something different: its numbers add up to "
                    f"{b:g}"
                )
                return f"{words} instead of {a:g}"
    return ""


def drift_of(before: ReplayedRun, after: ReplayedRun) -> float:
    """The largest gap of all calls that both have made."""
    theirs = after.record["trails"]
    gaps = [
        _gap(a, b)
        for number, trail in before.record["trails"].items()
        for a, b in zip(trail, theirs.get(number, ()), strict=False)
    ]
    return max(gaps, default=0.0)


def _gap(one: float, other: float) -> float:
    """Relative to the larger; of infinities and NaN, all or nothing."""
    if one == other or (one != one and other != other):
        return 0.0
    gap = abs(one - other) / max(abs(one), abs(other))
    return gap if gap == gap else math.inf


def differs_from_itself(first: ReplayedRun, again: ReplayedRun) -> str:
    """How two eager probes of one version differ; empty where they do not."""
    if first.exit_status != again.exit_status or len(first.calls) != len(again.calls):
        return "the program does not always call the same regions"
    judge = Judge(frozenset())
    for one, other in zip(first.calls, again.calls, strict=True):
        if one["left_out"] or other["left_out"]:
            continue
        ours, theirs = Replays(first, one), Replays(again, other)
        words = same_values((ours, one["inputs"]), (theirs, other["inputs"]))
        if words:
            return f"{one['name']} is called with different inputs each time: {words}"
        for recipe in ours.recipes:
            old, new = ours.get(recipe, "eager"), theirs.get(recipe, "eager")
            if old is None or new is None:
                continue
            wrong = judge.differences((ours, old), (theirs, new))
            if wrong:
                return f"{one['name']} returns something different each time: {wrong[0].words}"
    return astray(first, again)
