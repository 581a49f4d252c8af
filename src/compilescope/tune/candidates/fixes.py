"""The fixes that `compilescope fix` verifies for the program's breaks and recompiles."""

from __future__ import annotations

from compilescope.fixes.patch import Patch
from compilescope.source.refusals import Refused
from compilescope.tune.candidate import TuneCandidate, TunedProgram
from compilescope.tune.fixed_program import FIXES


def _propose(tuned: TunedProgram) -> Patch:
    if tuned.fixed is None:
        raise Refused(tuned.fixes_refused or "the program has no graph break and no recompile")
    return tuned.fixed


CANDIDATE = TuneCandidate(
    id=FIXES,
    title="verified fixes of graph breaks and recompiles",
    price="As each fix states it.",
    propose=_propose,
    order=5,
    helps="launches",
)
