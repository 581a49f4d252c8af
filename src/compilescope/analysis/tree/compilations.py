"""Compilations with all that the events say of each, in the order in which they began."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.findings.compile_ids import CompileKey, compile_key
from compilescope.model.bodies import (
    CompileFailed,
    CompilePhases,
    CompileTime,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.model.event import Event
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame

_TELLING = (CompileFailed, CompilePhases, CompileTime, GraphBreak, GraphCaptured, Recompile)


class Compilation(msgspec.Struct, kw_only=True, gc=False):
    """One compilation of one code object, forward and backward."""

    key: CompileKey
    rank: int
    thread: int
    first_ns: int
    """When it was first heard of."""
    code: CodeRef | None = None
    callers: tuple[Frame, ...] | None = None
    """The user's stack above the code; None where it was not told."""
    region: CodeRef | None = None
    """The function at which compiled code was entered."""
    within: CompileKey | None = None
    """The compilation during which it ran: a backend may compile functions of its own."""
    graphs: list[GraphCaptured] = []
    """As Dynamo captured them."""
    breaks: list[tuple[Event, GraphBreak]] = []
    recompile: Recompile | None = None
    failures: list[CompileFailed] = []
    times: list[CompileTime] = []
    made_eager: list[str] = []
    """Those of its events that made a frame run eagerly."""

    @property
    def compile_id(self) -> str:
        return self.key[2]


def compilations(run: Run) -> Iterator[Compilation]:
    """Each is let go of when the next is asked for: a long run has a hundred thousand."""
    found: dict[CompileKey, Compilation] = {}
    leading = {body.because for _, body in run.of(FrameSkipped) if body.because}
    for event in run.events:
        key = compile_key(event, event.compile_id)
        if key is None or not isinstance(event.body, _TELLING):
            continue
        one = found.get(key)
        if one is None:
            one = found[key] = Compilation(
                key=key, rank=event.rank, thread=event.thread, first_ns=event.time_ns
            )
        if event.id in leading:
            one.made_eager.append(event.id)
        _add(one, event)
        if isinstance(event.body, CompilePhases):
            for phase in event.body.phases:
                inner = found.get(compile_key(event, phase.compile_id) or key)
                if inner is not None and inner is not one:
                    inner.within = key
    waiting = list(found.values())
    found.clear()
    waiting.reverse()
    while waiting:
        yield waiting.pop()


def _add(one: Compilation, event: Event) -> None:
    body = event.body
    if isinstance(body, GraphCaptured):
        if body.stage == "dynamo":
            one.graphs.append(body)
            one.region = one.region or body.region
            _name(one, body.frame)
    elif isinstance(body, GraphBreak):
        one.breaks.append((event, body))
        _name(one, body.frame)
    elif isinstance(body, Recompile):
        one.recompile = body
        one.callers = event.stack
        _name(one, body.frame)
    elif isinstance(body, CompileFailed):
        one.failures.append(body)
        _name(one, body.frame)
    elif isinstance(body, CompileTime):
        one.times.append(body)
        if body.phase == "forward":
            one.callers = event.stack
        _name(one, body.frame)


def _name(one: Compilation, code: CodeRef | None) -> None:
    """The event at the end knows the rest of a function by its own first line only."""
    if code is not None and (one.code is None or _knows_its_function(code)):
        one.code = code


def _knows_its_function(code: CodeRef) -> bool:
    return code.resumed_at != code.line
