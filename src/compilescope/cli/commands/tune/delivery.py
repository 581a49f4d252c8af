"""What `tune` writes besides its report: changes to the user's files, or a script."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compilescope.cli.commands.fix.delivery import Delivery

if TYPE_CHECKING:
    from compilescope.cli.commands.tune.options import TuneRequest
    from compilescope.model.fix_search import FixCheck
    from compilescope.repair.delivery.emitter import Emitted
    from compilescope.tune.outcome import TuneResult


def deliver(request: TuneRequest, result: TuneResult) -> Delivery:
    """Nothing that was not proven as a whole leaves here."""
    if not (request.write or request.plan is not None):
        return Delivery()
    wanted = "No file was changed" if request.write else "No script was written"
    if result.interrupted or result.outcome.verdict != "verified":
        return Delivery(problem=f"{wanted}.")
    return _write(request, result) if request.write else _emit(request, result)


def _write(request: TuneRequest, result: TuneResult) -> Delivery:
    from compilescope.repair.delivery.stored_fix import write_fix

    done = write_fix(result.files, result.originals, result.environment, force=request.force)
    return Delivery(written=done.written, remarks=done.remarks, undo=done.undo)


def _emit(request: TuneRequest, result: TuneResult) -> Delivery:
    """It is run by itself, in fresh processes: once to its end, and by turns with the original."""
    from compilescope.processes.deadline import OutOfTime

    try:
        emitted = _emitted(request, result, run=True)
    except OutOfTime:
        emitted = _emitted(request, result, run=False)
    proof = emitted.proof
    if not proof.holds:
        problem = f"No script was written: when it ran, {proof.reason}."
        return Delivery(problem=problem, proof=proof)
    script = os.path.abspath(emitted.plan.output)
    return Delivery(script=script, command=emitted.plan.command, proof=proof)


def _emitted(request: TuneRequest, result: TuneResult, *, run: bool) -> Emitted:
    from compilescope.repair.delivery.emitter import emit
    from compilescope.repair.search.options import SearchOptions
    from compilescope.repair.search.outcome import SearchResult
    from compilescope.tune.script_speed import measure_script

    assert request.plan is not None
    options = request.options
    # Where the budget ended before the whole program ran, it may lose what the original loses.
    losses = result.after if result.after is not None else result.before
    plan = request.plan

    def measured() -> tuple[FixCheck, ...]:
        return measure_script(plan.target, plan.output, request.target, result, options).checks

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
        request.plan,
        found,
        request.target,
        SearchOptions(
            limit_s=options.limit_s,
            deadline=options.deadline,
            seed=options.seed,
            stdin=options.stdin,
            compile_names=options.compile_names,
            backend=options.backend,
            progress=options.progress,
        ),
        tuple(f"{each.candidate}: {each.title}" for each in result.attempts if each.kept),
        proven=run,
        claimed=losses,
        numbers=False,
        also=measured,
        why_unverified="" if run else "the time budget ended before it was run by itself",
    )
