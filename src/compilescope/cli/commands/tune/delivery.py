"""What `tune` writes besides its report: changes to the user's files, or a script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compilescope.cli.commands.fix.delivery import Handed

if TYPE_CHECKING:
    from compilescope.cli.commands.tune.options import TuneRequest
    from compilescope.tune.outcome import TuneResult


def hand_out(asked: TuneRequest, result: TuneResult) -> Handed:
    """Nothing that was not proven as a whole leaves here."""
    if not (asked.write or asked.plan is not None):
        return Handed()
    wanted = "No file was changed" if asked.write else "No script was written"
    if result.interrupted or result.outcome.verdict != "verified":
        return Handed(problem=f"{wanted}.")
    return _write(asked, result) if asked.write else _emit(asked, result)


def _write(asked: TuneRequest, result: TuneResult) -> Handed:
    from compilescope.repair.delivery.stored_fix import write_fix

    done = write_fix(result.files, result.originals, result.environment, force=asked.force)
    return Handed(written=done.written, remarks=done.remarks, undo=done.undo)


def _emit(asked: TuneRequest, result: TuneResult) -> Handed:
    """It was proven as a version of the program; as a script it is the same text."""
    from compilescope.repair.delivery.emitter import emit
    from compilescope.repair.search.options import SearchOptions
    from compilescope.repair.search.outcome import SearchResult

    assert asked.plan is not None
    found = SearchResult(
        before=result.before,
        after=result.after,
        attempts=(),
        files=result.files,
        originals=result.originals,
        environment=result.environment,
        main=result.main,
        verdict="verified",
    )
    kept = tuple(f"{each.candidate}: {each.title}" for each in result.attempts if each.kept)
    emitted = emit(
        asked.plan,
        found,
        asked.target,
        SearchOptions(limit_s=asked.wishes.limit_s, deadline=asked.wishes.deadline),
        kept,
        proven=False,
        why_unverified="it was measured as a version of the program, not as this script",
    )
    return Handed(script=os.path.abspath(emitted.plan.output), command=emitted.plan.command)
