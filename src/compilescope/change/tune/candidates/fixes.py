"""The fixes that `compilescope fix` verifies for the program's breaks and recompiles."""

from __future__ import annotations

from dataclasses import replace

from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import OutOfTime
from compilescope.change.fixes.patch import Patch
from compilescope.change.tune.candidate import TuneCandidate, TunedProgram
from compilescope.change.tune.options import TuneOptions
from compilescope.instrument.recorder.target import Target
from compilescope.knowledge.source.refusals import Refused

FIXES = "fixes"
"""The id of this candidate."""


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


def fixed_version(target: Target, options: TuneOptions, tuned: TunedProgram) -> TunedProgram:
    """With what the search found, or why there is nothing: it runs the program many times, which a
    candidate does not."""
    digest = tuned.program.digest
    if not (digest.sites or digest.recompiles):
        return tuned
    from compilescope.change.repair.search.options import SearchOptions
    from compilescope.change.repair.search.rounds import search

    options.progress("searching fixes for breaks and recompiles", 0, 0)
    wanted = SearchOptions(
        safe_only=True,
        own_only=True,
        limit_s=options.limit_s,
        deadline=options.deadline,
        seed=options.seed,
        stdin=options.stdin,
        compile_names=options.compile_names,
        backend=options.backend,
        timed=False,
    )
    try:
        found = search(target, wanted)
    except OutOfTime:
        return replace(tuned, fixes_refused="the time budget ran out in the search for fixes")
    except ToolError as error:
        return replace(tuned, fixes_refused=error.message.rstrip("."))
    if found.verdict != "verified" or not found.files:
        return replace(tuned, fixes_refused=found.reason or "no fix could be verified")
    return replace(tuned, fixed=Patch(found.files, environment=found.environment))
