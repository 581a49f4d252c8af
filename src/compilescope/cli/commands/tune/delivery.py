"""What `tune` writes besides its report: changes to the user's files, or a script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compilescope.cli.commands.fix.delivery import Handed

if TYPE_CHECKING:
    from compilescope.cli.commands.tune.options import TuneRequest
    from compilescope.model.fix_search import FixCheck
    from compilescope.repair.delivery.emitter import Emitted
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
    """It is run by itself, in fresh processes: once to its end, and by turns with the original."""
    from compilescope.processes.deadline import OutOfTime

    try:
        emitted = _emitted(asked, result, run=True)
    except OutOfTime:
        emitted = _emitted(asked, result, run=False)
    proof = emitted.proof
    if not proof.holds:
        problem = f"No script was written: when it ran, {proof.reason}."
        return Handed(problem=problem, proof=proof)
    script = os.path.abspath(emitted.plan.output)
    return Handed(script=script, command=emitted.plan.command, proof=proof)


def _emitted(asked: TuneRequest, result: TuneResult, *, run: bool) -> Emitted:
    from compilescope.repair.delivery.emitter import emit
    from compilescope.repair.search.options import SearchOptions
    from compilescope.repair.search.outcome import SearchResult
    from compilescope.tune.script_speed import measure_script

    assert asked.plan is not None
    wishes = asked.wishes
    # Where the budget ended before the whole program ran, it may lose what the original loses.
    losses = result.after if result.after is not None else result.before
    plan = asked.plan

    def measured() -> tuple[FixCheck, ...]:
        return measure_script(plan.target, plan.output, asked.target, result, wishes).checks

    found = SearchResult(
        before=result.before,
        after=losses,
        attempts=(),
        files=result.files,
        originals=result.originals,
        environment=result.environment,
        main=result.main,
        verdict="verified",
    )
    return emit(
        asked.plan,
        found,
        asked.target,
        SearchOptions(
            limit_s=wishes.limit_s,
            deadline=wishes.deadline,
            seed=wishes.seed,
            stdin=wishes.stdin,
            compile_names=wishes.compile_names,
            backend=wishes.backend,
            progress=wishes.progress,
        ),
        tuple(f"{each.candidate}: {each.title}" for each in result.attempts if each.kept),
        proven=run,
        claimed=losses,
        numbers=False,
        also=measured,
        why_unverified="" if run else "the time budget ended before it was run by itself",
    )
