"""The profile of a run: each process's, with its bar."""

from __future__ import annotations

from statistics import median

import msgspec

from compilescope.model.bodies import StepsProfiled
from compilescope.model.run import Run
from compilescope.profiles.step import StepBar, bar_of
from compilescope.profiles.stored import read_stored


class StepProfile(msgspec.Struct, frozen=True):
    """What is known of one process's steps."""

    rank: int
    told: StepsProfiled
    bar: StepBar | None = None


def profiles_of(run: Run) -> list[StepProfile]:
    """One a process that was asked for one, by rank."""
    found = []
    for event, body in run.of(StepsProfiled):
        text = run.artifacts.get(body.trace) if body.trace else None
        step_us = median(body.step_ns) / 1e3 if body.step_ns else None
        bar = bar_of(read_stored(text), step_us) if text else None
        found.append(StepProfile(event.rank, body, bar))
    return sorted(found, key=lambda profile: profile.rank)
