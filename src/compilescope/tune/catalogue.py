"""Every candidate there is, in the order in which they are tried. Adding a file adds one."""

from __future__ import annotations

from functools import cache

import compilescope.tune.candidates as candidates
from compilescope.plugins import discover
from compilescope.tune.candidate import TuneCandidate


@cache
def all_candidates() -> tuple[TuneCandidate, ...]:
    found = discover(candidates, "CANDIDATE", TuneCandidate, several="CANDIDATES")
    return tuple(sorted(found, key=lambda each: (each.autotunes, each.order, each.id)))
