"""Compile ids, `frame/compile_attempt`, unique within a process and epoch only; what each cost."""

from __future__ import annotations

import functools

import msgspec

from compilescope.base.patterns import late
from compilescope.base.texts import whole_number
from compilescope.record.bodies import (
    CompileFailed,
    CompilePhases,
    CompileTime,
    GraphBreak,
    Recompile,
    RegionCalls,
)
from compilescope.record.event import Event
from compilescope.record.run import Run

_ATTEMPT_BEGINS = "compile_attempt_"
_ATTEMPT = late(rf"^{_ATTEMPT_BEGINS}(\d{{1,9}})$")
_NS = 1e9
"""Nanoseconds of a second."""
Process = tuple[str, int]
"""As in the ids of its events, and its pid: a pid alone may be that of another machine."""
CompileKey = tuple[Process, int, str]
"""Process, epoch and compile id without the attempt."""


def process_of(event: Event) -> Process:
    return _process(event.id.rpartition(".")[0], event.pid)


@functools.lru_cache(1 << 12)
def _process(name: str, pid: int) -> Process:
    """One for all its events: views keep a key for each compilation."""
    return name, pid


def compile_key(event: Event, compile_id: str | None) -> CompileKey | None:
    if compile_id is None:
        return None
    # As `process_of` and `without_attempt` say, without two calls: asked of every event, by many.
    process = _process(event.id.rpartition(".")[0], event.pid)
    return process, event.epoch, compile_id.partition("_")[0]


def compile_keys(
    run: Run, kind: type[Recompile | CompileFailed | GraphBreak]
) -> set[CompileKey | None]:
    """Of the compilations with such an event."""
    return {compile_key(event, event.compile_id) for event, _ in run.of(kind)}


def without_attempt(compile_id: str) -> str:
    return compile_id.partition("_")[0]


# What causes cost in compile time: recompiles as a whole, breaks by the tracing thrown away.


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


class CalledRegion(msgspec.Struct, frozen=True):
    """A compiled region: how often it was called, and in which call something was last compiled."""

    calls: int
    last_compiled: int
    """0: in none."""


_Region = tuple[Process, int]


def _calls(run: Run) -> dict[_Region, int]:
    return {(process_of(event), body.region): body.calls for event, body in run.of(RegionCalls)}


def called_regions(run: Run) -> list[CalledRegion]:
    """In order of their numbers; empty where nobody counted."""
    counted = _calls(run)
    last: dict[_Region, int] = {}
    for event, body in run.of(CompileTime) if counted else ():
        if body.region is not None and body.call is not None:
            place = process_of(event), body.region
            last[place] = max(last.get(place, 0), body.call)
    return [CalledRegion(calls, last.get(place, 0)) for place, calls in counted.items()]


def calls_after_recompiles(run: Run) -> dict[str, int]:
    """By the id of each recompile's event: how often its region was called afterwards. One of
    which nobody counted the calls is missing."""
    counted = _calls(run)
    if not counted:
        return {}
    calls: dict[CompileKey, tuple[int, int]] = {}
    for event, time in run.of(CompileTime):
        key = compile_key(event, event.compile_id)
        if key is not None and time.region is not None and time.call is not None:
            calls[key] = time.region, time.call
    found: dict[str, int] = {}
    for event, _ in run.of(Recompile):
        key = compile_key(event, event.compile_id)
        if key in calls:
            region, call = calls[key]
            total = counted.get((process_of(event), region))
            if total is not None:
                found[event.id] = max(total - call, 0)
    return found


def retrace_seconds(run: Run) -> dict[str, float]:
    """By the id of each break's event: the attempt that ended there, whose tracing was lost. Of a
    run without phases nothing is known. A compilation counts once: what was lost in a recompile, or
    in one that failed, is part of that."""
    attempts: dict[tuple[CompileKey, int], int] = {}
    for event, phases in run.of(CompilePhases):
        for phase in phases.phases:
            # Of all phases few are attempts: an expression is asked of those alone.
            name = phase.name
            match = _ATTEMPT.match(name) if name.startswith(_ATTEMPT_BEGINS) else None
            if match is None:
                continue
            key = compile_key(event, phase.compile_id or event.compile_id)
            if key is not None:
                attempts[key, int(match[1])] = phase.duration_ns
    elsewhere = compile_keys(run, Recompile) | compile_keys(run, CompileFailed)
    found: dict[str, float] = {}
    for event, body in run.of(GraphBreak):
        key = compile_key(event, event.compile_id)
        if key is None or key in elsewhere:
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
