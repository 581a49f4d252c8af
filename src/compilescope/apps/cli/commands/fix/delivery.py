"""What `fix` writes besides its report: changes to the user's files, or a script.

Only fixes that were verified all together are written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compilescope.apps.cli.commands.fix.options import FixRequest
    from compilescope.change.repair.delivery.emitter import Proof
    from compilescope.change.repair.search.outcome import SearchResult


@dataclass(frozen=True)
class Delivery:
    """What was written."""

    written: tuple[str, ...] = ()
    script: str | None = None
    """The path of the script."""
    command: str = ""
    """How to run it."""
    problem: str = ""
    """Why what was asked for was not written."""
    remarks: tuple[str, ...] = ()
    undo: str = ""
    """How git takes back what was written."""
    proof: Proof | None = None
    """How the script went when it was run by itself."""


def is_lost(outcome: SearchResult) -> bool:
    """Does the program lose anything, whether or not it was asked for?"""
    return outcome.before.anything


def deliver(request: FixRequest, outcome: SearchResult) -> Delivery:
    """Nothing that was not proven as a whole leaves here."""
    proven = outcome.verdict == "verified" and bool(outcome.files or outcome.environment)
    if not (request.write or request.plan is not None) or not outcome.attempts:
        return Delivery()
    if not proven:
        wanted = "No file was changed" if request.write else "No script was written"
        return Delivery(problem=f"{wanted}.")
    return _write(request, outcome) if request.write else _emit(request, outcome)


def _write(request: FixRequest, outcome: SearchResult) -> Delivery:
    from compilescope.change.repair.delivery.stored_fix import write_fix
    from compilescope.record.stack import origin_of

    theirs = [file for file in outcome.files if origin_of(file) != "user"]
    if theirs:
        # Part of the proof: the rest alone was not proven.
        problem = f"No file was changed: the fixes also change {theirs[0]}, which is not your file."
        return Delivery(problem=problem, remarks=("Use --script: it includes those changes.",))
    done = write_fix(outcome.files, outcome.originals, outcome.environment, force=request.force)
    return Delivery(written=done.written, remarks=done.remarks, undo=done.undo)


def _emit(request: FixRequest, outcome: SearchResult) -> Delivery:
    from compilescope.base.processes.deadline import OutOfTime
    from compilescope.change.repair.delivery.emitter import emit

    assert request.plan is not None
    words = fixes_in_words(outcome, request)
    try:
        emitted = emit(
            request.plan, outcome, request.target, request.options, words, claimed=outcome.after
        )
    except OutOfTime:
        return Delivery(
            problem="No script was written: the time budget ended before it was checked."
        )
    remarks = [f"Not in the script: {_named(file)}: {why}." for file, why in emitted.script.refused]
    proof = emitted.proof
    if not proof.holds:
        problem = f"No script was written: when it ran, {proof.reason}."
        return Delivery(problem=problem, remarks=tuple(remarks), proof=proof)
    return Delivery(
        proof=proof,
        script=os.path.abspath(emitted.plan.output),
        command=emitted.plan.command,
        remarks=tuple(remarks),
    )


def fixes_in_words(outcome: SearchResult, request: FixRequest) -> tuple[str, ...]:
    """A line for each fix that is part of it."""
    from compilescope.report.places import place

    lines = []
    for each in outcome.attempts:
        if each.kept:
            states = f" ({each.states})" if each.states else ""
            at = place(each.file, each.line, request.target.root)
            lines.append(f"{at}: {each.rule}: {each.title}{states}")
    return tuple(lines)


def _named(file: str) -> str:
    from compilescope.report.places import shown_path

    return shown_path(file, os.getcwd())
