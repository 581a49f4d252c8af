"""Every candidate there is, in the order in which they are tried. Adding a file adds one."""

from __future__ import annotations

from functools import cache

import compilescope.tune.candidates as candidates
from compilescope.plugins import discover
from compilescope.tune.candidate import StepFacts, TuneCandidate


@cache
def all_candidates() -> tuple[TuneCandidate, ...]:
    found = discover(candidates, "CANDIDATE", TuneCandidate, several="CANDIDATES")
    return tuple(sorted(found, key=lambda each: (each.autotunes, each.order, each.id)))


def likelihood(
    candidate: TuneCandidate, facts: StepFacts, *, lower_precision: bool
) -> tuple[bool, bool, bool, int]:
    """By which candidates are sorted for one program: what cannot be part of the result last, what
    helps with what the step waits for first."""
    cannot = candidate.lower_precision and not lower_precision
    bound = facts.bound_by
    return (
        candidate.for_compile_time,
        cannot,
        bool(bound) and candidate.helps != bound,
        candidate.order,
    )
