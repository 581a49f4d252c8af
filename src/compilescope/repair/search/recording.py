"""The original's run, kept with the attempts to mend it and what they came to, so that a report can
show both and the fix can be applied later."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import msgspec

from compilescope.fixes.stored import store_files
from compilescope.model.archive import ARTIFACTS
from compilescope.model.artifacts import Artifacts, DiskArtifacts
from compilescope.model.bodies import Body, FixAttempt, FixOutcome
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile
from compilescope.model.home import note_made
from compilescope.model.outcomes import FixLeft
from compilescope.repair.search.outcome import Attempt, Outcome


def keep_run(folder: Path, home: Path, outcome: Outcome) -> Path | None:
    """Copy the run to the user's own; None where that cannot be written."""
    target = home.absolute() / folder.name
    try:
        shutil.copytree(folder, target)
        tell_outcome(target, outcome)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        return None
    note_made(target)
    return target


def tell_outcome(run: Path, outcome: Outcome) -> None:
    """Append what became of each attempt, and of all together."""
    kept = _outcome(outcome, DiskArtifacts(run / ARTIFACTS))
    file, name = EventFile.claim(run, 0)
    for number, body in enumerate([*map(_attempt, outcome.attempts), kept]):
        event = Event(id=f"{name}.{number}", time_ns=time.time_ns(), pid=os.getpid(), body=body)
        file.write(encode(event))
    file.close()


def _attempt(each: Attempt) -> Body:
    return FixAttempt(
        fix=each.fix,
        title=each.title,
        verdict=each.verdict,
        because=each.because,
        cause=each.cause,
        reason=each.reason,
        states=each.states,
        kept=each.kept,
        diff=each.diff,
    )


def _outcome(outcome: Outcome, artifacts: Artifacts) -> Body:
    return FixOutcome(
        verdict=outcome.verdict,
        reason=outcome.reason,
        changes=store_files(outcome.files, outcome.originals, artifacts),
        environment=outcome.environment,
        before=msgspec.structs.asdict(outcome.before),
        after=msgspec.structs.asdict(outcome.after),
        warm_call=_warm_call(outcome),
        notes=outcome.notes,
        left=tuple(FixLeft(place, why) for place, why in outcome.left),
    )


def _warm_call(outcome: Outcome) -> tuple[float, float] | None:
    times = outcome.times
    if times is None or times.before.steady is None or times.after.steady is None:
        return None
    return times.before.steady.median, times.after.steady.median
