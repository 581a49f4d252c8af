"""How `tune` tells what came of it, in words or JSON; what it hands out; and `tune --list`."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compilescope.apps.cli import output as terminal
from compilescope.apps.cli.commands.fix.delivery import Delivery
from compilescope.apps.cli.options import home_folder, in_python, print_json
from compilescope.apps.cli.program import Words
from compilescope.base.durations import write_duration
from compilescope.base.errors import ToolError
from compilescope.report.tuning import TuningView, candidates_document, tuning_document

if TYPE_CHECKING:
    from compilescope.change.repair.delivery.emitter import Emitted, Proof, ScriptPlan
    from compilescope.change.tune.options import TuneOptions
    from compilescope.change.tune.outcome import TuneResult
    from compilescope.instrument.recorder.target import Target
    from compilescope.record.fix_search import FixCheck


_ROOM = 4
"""Times as long as something is known to need at least: the limit that it gets. Chosen."""


def list_candidates(*, as_json: bool, everything: bool) -> None:
    from compilescope.change.tune.candidate import all_candidates

    rows = [(each.id, each.title, each.price) for each in all_candidates()]
    if as_json:
        print_json(
            {"candidates": [dict(zip(("id", "title", "price"), r, strict=True)) for r in rows]}
        )
        return
    terminal.tell(
        candidates_document(rows), "compilescope tune --list --all", everything=everything
    )


def tell(result: TuneResult, request: TuneRequest, delivery: Delivery, *, as_json: bool) -> None:
    if as_json:
        shown = value(result)
        if request.plan is not None:
            shown |= {"script": delivery.script, "script_proof": delivery.proof}
        print_json(shown)
        return
    words = " ".join(" ".join(request.target.shown).split())
    document = tuning_document(
        TuningView(
            subtitle=words if len(words) <= 200 else words[:197] + "...",
            outcome=result.outcome,
            attempts=result.attempts,
            told=tuple(_told(delivery)),
            next=tuple(_next(result, request, delivery)),
        )
    )
    terminal.tell(document, "")


def _told(delivery: Delivery) -> Iterator[str]:
    if delivery.written:
        yield f"Changed: {', '.join(os.path.relpath(file) for file in delivery.written)}."
    if delivery.script is not None:
        yield _script_line(delivery.script, delivery.proof)
    if delivery.problem:
        yield delivery.problem
    yield from delivery.remarks


def _script_line(script: str, proof: Proof | None) -> str:
    path = os.path.relpath(script)
    if proof is None or proof.verdict != "verified":
        return f"Written, but not verified by itself: {path} ({proof and proof.reason})."
    speed = next((each.words for each in proof.checks if each.name == "speed"), "")
    faster = f": {speed} faster a step than the original" if speed else ""
    return f"Written, and verified by running it in a fresh process{faster}: {path}."


def _next(
    result: TuneResult, request: TuneRequest, delivery: Delivery
) -> Iterator[tuple[str, str]]:
    if delivery.undo:
        yield "To undo:", delivery.undo
    if delivery.command:
        yield "To run it:", delivery.command
    elif result.outcome.verdict == "verified" and not delivery.written:
        kept = [
            word for each in result.attempts if each.kept for word in ("--only", each.candidate)
        ]
        again = _again(request, "--write", *kept)
        yield "To measure it again and change your files:", again
    from compilescope.change.tune.candidate import all_candidates

    changes_numbers = {each.id for each in all_candidates() if each.lower_precision}
    apart = {each.candidate for each in result.attempts if each.verdict == "apart"}
    if apart & changes_numbers and not request.options.lower_precision:
        yield "To use lower precision too:", _again(request, "--lower-precision")
    for each in result.attempts:
        if each.needs_seconds is not None:
            # Without a budget it has as long as it needs, but for the limit of one process.
            limit_s = 60 * math.ceil(_ROOM * each.needs_seconds / 60)
            long = limit_s > request.options.limit_s
            more = ["--limit", write_duration(limit_s)] if long else []
            again = _again(request, *more, "--only", each.candidate)
            yield f"To try {each.candidate} alone, without a time budget:", again
    if result.run:
        yield "For details:", shlex.join(["compilescope", "report", result.run])


def _again(request: TuneRequest, *more: str) -> str:
    """The same search of the same program, with more words."""
    words = ["compilescope", "tune", *in_python(), *more, *request.again]
    return shlex.join([*words, *request.target.given])


def value(result: TuneResult) -> dict[str, Any]:
    """What --json prints."""
    outcome = result.outcome
    return {
        "step": outcome.step,
        "before_ms": outcome.before_ms,
        "after_ms": outcome.after_ms,
        "speedup": outcome.speedup,
        "speedup_ci": outcome.speedup_ci,
        "candidates": [
            {
                "id": each.candidate,
                "verdict": each.verdict,
                "speedup": each.speedup,
                "speedup_ci": each.speedup_ci,
                "numbers": each.numbers or None,
                "memory_bytes": each.memory_bytes,
                "compile_seconds": each.compile_seconds,
                "compile_speedup": each.compile_speedup,
                "compile_speedup_ci": each.compile_speedup_ci,
                "artifact_bytes": each.artifact_bytes,
                "needs_seconds": each.needs_seconds,
                "diff": each.diff,
                "reason": each.reason,
            }
            for each in result.attempts
        ],
        "placements": outcome.placements,
        "notes": outcome.notes,
        "diff": outcome.diff,
    }


# What `tune` writes besides its report: changes to the user's files, or a script.


def deliver(request: TuneRequest, result: TuneResult) -> Delivery:
    """Nothing that was not proven as a whole leaves here."""
    if not (request.write or request.plan is not None):
        return Delivery()
    wanted = "No file was changed" if request.write else "No script was written"
    if result.interrupted or result.outcome.verdict != "verified":
        return Delivery(problem=f"{wanted}.")
    return _write(request, result) if request.write else _emit(request, result)


def _write(request: TuneRequest, result: TuneResult) -> Delivery:
    from compilescope.change.repair.delivery.stored_fix import write_fix

    done = write_fix(result.files, result.originals, result.environment, force=request.force)
    return Delivery(written=done.written, remarks=done.remarks, undo=done.undo)


def _emit(request: TuneRequest, result: TuneResult) -> Delivery:
    """It is run by itself, in fresh processes: once to its end, and by turns with the original."""
    from compilescope.base.processes.deadline import OutOfTime

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
    from compilescope.change.repair.delivery.emitter import emit
    from compilescope.change.repair.search.options import SearchOptions
    from compilescope.change.repair.search.outcome import SearchResult
    from compilescope.change.tune.judge import measure_script

    assert request.plan is not None
    options = request.options
    # Where the budget ended before the whole program ran, it may lose what the original loses.
    losses = result.after if result.after is not None else result.before
    plan = request.plan

    def measured() -> tuple[FixCheck, ...]:
        return measure_script(plan.target, plan.output, request.target, result, options)

    found = SearchResult(
        before=result.before,
        after=losses,
        attempts=(),
        files=result.files,
        originals=result.originals,
        environment=result.environment,
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


@dataclass(frozen=True)
class TuneRequest:
    """A request that makes sense."""

    target: Target
    options: TuneOptions
    main: str
    write: bool
    force: bool
    plan: ScriptPlan | None
    everything: bool = False
    again: tuple[str, ...] = ()
    """What was asked of every search of this program."""


def read_request(words: Words, given: dict[str, Any]) -> TuneRequest:
    """Raises `ToolError` for all that can be known to fail before anything runs."""
    from compilescope.apps.cli.commands.fix.options import check_source, read_writing
    from compilescope.base.processes.deadline import Deadline, command_begun
    from compilescope.base.settings import is_rank
    from compilescope.change.repair.delivery.emitter import plan_script
    from compilescope.change.repair.search.options import main_file
    from compilescope.change.tune.options import TuneOptions
    from compilescope.instrument.recorder.names import resolve_names
    from compilescope.instrument.recorder.target import Target

    read_writing(given)
    kind, rest = words
    if is_rank():
        raise ToolError(
            "tune starts the ranks itself.",
            hint="Without torchrun around it: compilescope tune --torchrun [ARGS]... SCRIPT.",
        )
    if kind == "module" and rest[:1] == ("torch.distributed.run",):
        kind, rest = "torchrun", rest[1:]
    if kind not in ("script", "module", "code", "torchrun"):
        raise ToolError("tune takes a script, -m MODULE, -c CODE or --torchrun.")
    if not rest:
        raise ToolError(
            "No program given.", hint="Try `compilescope tune script.py`, or -m MODULE."
        )
    budget_s = given["budget"]
    target = Target(kind, rest)  # type: ignore[arg-type]
    target.check()
    main = main_file(target)
    check_source(target, main)
    names = resolve_names(given["compile_names"], target)
    options = TuneOptions(
        step=given["step"],
        only=frozenset(given["only"]),
        lower_precision=given["lower_precision"],
        limit_s=given["limit"],
        budget_s=budget_s,
        deadline=Deadline(budget_s, begun=command_begun()),
        compile_names=("*", *names) if given["compile_all"] else names,
        backend=given["backend"],
        jobs=given["jobs"],
        home=home_folder(given["home"]).absolute(),
    )
    options.check()
    if kind == "torchrun" and given["script"]:
        raise ToolError("--script cannot be used with --torchrun: use --write.")
    plan = plan_script(target, given["output"]) if given["script"] else None
    if plan is not None:
        plan.check(force=given["force"])
    return TuneRequest(
        target,
        options,
        main,
        given["write"],
        given["force"],
        plan,
        given["everything"],
        tuple(_asked(given)),
    )


def _asked(given: dict[str, Any]) -> Iterator[str]:
    for flag in ("lower_precision", "compile_all"):
        if given[flag]:
            yield f"--{flag.replace('_', '-')}"
    for name in ("step", "backend"):
        if given[name] is not None:
            yield from (f"--{name}", given[name])
    for name in given["compile_names"]:
        yield from ("--compile", name)
