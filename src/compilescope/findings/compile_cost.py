"""What causes cost in compile time: recompiles as a whole, breaks by the tracing thrown away."""

from __future__ import annotations

from compilescope.findings.compile_ids import CompileKey, compile_key
from compilescope.model.bodies import CompilePhases, CompileTime, GraphBreak, Recompile
from compilescope.model.run import Run
from compilescope.patterns import late
from compilescope.texts import whole_number

_ATTEMPT = late(r"^compile_attempt_(\d{1,9})$")
_NS = 1e9
"""Nanoseconds of a second."""


def recompile_seconds(run: Run) -> dict[str, float]:
    """By the id of each recompile's event: forward and backward compilation. One whose end was
    never told is missing."""
    spent: dict[CompileKey, int] = {}
    for event, body in run.of(CompileTime):
        key = compile_key(event, event.compile_id)
        if key is not None:
            spent[key] = spent.get(key, 0) + body.duration_ns
    found: dict[str, float] = {}
    for event, _ in run.of(Recompile):
        key = compile_key(event, event.compile_id)
        if key in spent:
            found[event.id] = spent[key] / _NS
    return found


def retrace_seconds(run: Run) -> dict[str, float]:
    """By the id of each break's event: the attempt that ended there, whose tracing was lost. Of a
    run without phases nothing is known."""
    attempts: dict[tuple[CompileKey, int], int] = {}
    for event, phases in run.of(CompilePhases):
        for phase in phases.phases:
            match = _ATTEMPT.match(phase.name)
            if match is None:
                continue
            key = compile_key(event, phase.compile_id or event.compile_id)
            if key is not None:
                attempts[key, int(match[1])] = phase.duration_ns
    found: dict[str, float] = {}
    for event, body in run.of(GraphBreak):
        key = compile_key(event, event.compile_id)
        if key is None:
            continue
        number = _attempt(event.compile_id or "")
        # At a jump Dynamo compiles what it has and goes on: nothing of that attempt is lost.
        thrown_away = (key, number + 1) in attempts or body.outcome == "frame-eager"
        if thrown_away and (key, number) in attempts:
            found[event.id] = attempts[key, number] / _NS
    return found


def _attempt(compile_id: str) -> int:
    number = compile_id.partition("_")[2]
    return whole_number(number) or 0
