"""Compilations with all that the events say of each, in the order in which they began."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from compilescope.analysis.tree.frames import added
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

_TELLING = frozenset(
    (CompileFailed, CompilePhases, CompileTime, GraphBreak, GraphCaptured, Recompile)
)


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
    graphs: Sequence[GraphCaptured] = ()
    """As Dynamo captured them."""
    breaks: Sequence[tuple[Event, GraphBreak]] = ()
    recompile: Recompile | None = None
    failures: Sequence[CompileFailed] = ()
    times: Sequence[CompileTime] = ()
    made_eager: Sequence[str] = ()
    """Those of its events that made a frame run eagerly."""

    @property
    def compile_id(self) -> str:
        return self.key[2]


def compilations(run: Run) -> Iterator[Compilation]:
    """Each is made when it is asked for, and let go of when the next is: a long run has a hundred
    thousand."""
    told: dict[CompileKey, Sequence[Event]] = {}
    around: dict[CompileKey, CompileKey] = {}
    for event in run.events:
        if type(event.body) not in _TELLING:
            continue
        key = compile_key(event, event.compile_id)
        if key is None:
            continue
        told[key] = added(told.get(key, ()), event)
        if isinstance(event.body, CompilePhases):
            for phase in event.body.phases:
                inner = compile_key(event, phase.compile_id)
                if inner is not None and inner != key and inner in told:
                    around[inner] = key
    leading = {body.because for _, body in run.of(FrameSkipped) if body.because}
    for key in list(told):
        yield _compilation(key, told.pop(key), around.get(key), leading)


def _compilation(
    key: CompileKey, events: Sequence[Event], within: CompileKey | None, leading: set[str]
) -> Compilation:
    first = events[0]
    one = Compilation(
        key=key, rank=first.rank, thread=first.thread, first_ns=first.time_ns, within=within
    )
    for event in events:
        if event.id in leading:
            one.made_eager = added(one.made_eager, event.id)
        _add(one, event)
    return one


def _add(one: Compilation, event: Event) -> None:
    body = event.body
    if isinstance(body, GraphCaptured):
        if body.stage == "dynamo":
            one.graphs = added(one.graphs, body)
            one.region = one.region or body.region
            _name(one, body.frame)
    elif isinstance(body, GraphBreak):
        one.breaks = added(one.breaks, (event, body))
        _name(one, body.frame)
    elif isinstance(body, Recompile):
        one.recompile = body
        one.callers = event.stack
        _name(one, body.frame)
    elif isinstance(body, CompileFailed):
        one.failures = added(one.failures, body)
        _name(one, body.frame)
    elif isinstance(body, CompileTime):
        one.times = added(one.times, body)
        if body.phase == "forward":
            one.callers = event.stack
        _name(one, body.frame)


def _name(one: Compilation, code: CodeRef | None) -> None:
    """The event at the end knows the rest of a function by its own first line only."""
    if code is not None and (one.code is None or _knows_its_function(code)):
        one.code = code


def _knows_its_function(code: CodeRef) -> bool:
    return code.resumed_at != code.line
