"""The records that a compile tree is made of: frames, their compilations and their breaks.

Flat: frames name one another by number, parents before children, so that no chain of breaks is too
long to walk. Compilations are gathered from the events, in the order in which they began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.timeline.bars import failed_guards
from compilescope.knowledge.findings.compile_ids import CompileKey, compile_key
from compilescope.record.bodies import (
    CompileFailed,
    CompilePhases,
    CompileTime,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame

T = TypeVar("T")
_STACK_VALUE = late(r"___stack\d+")


class TreeCompilation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One compilation of a frame."""

    key: CompileKey
    repeats: tuple[str, ...] = ()
    """Compile ids of others that are the very same, where ranks or resets repeat it."""
    ops: tuple[int | None, ...] = ()
    """Of each graph that was captured."""
    ended_by_break: bool | None = None
    backend: str | None = None
    ok: bool | None = None
    """None where its end was not told."""
    called_from: Frame | None = None
    """Where it is not where the frame was called first."""
    recompile: Recompile | None = None
    """Why no earlier compilation of the frame fitted."""
    broken: str = ""
    """The expression at the break before it."""
    backward: Literal["", "compiled", "failed"] = ""
    failures: tuple[str, ...] = ()
    duration_ns: int = 0
    """Forward and backward; the longest, where it is repeated."""
    within_another: bool = False
    """A backend compiled it during another compilation, whose time holds this one's."""

    @property
    def compile_ids(self) -> tuple[str, ...]:
        """Its own first."""
        return (self.key[2], *self.repeats)

    @property
    def again(self) -> bool:
        """No earlier compilation of the frame fitted."""
        return self.recompile is not None

    @property
    def refused(self) -> Literal["", "limit", "error"]:
        return self.recompile.refused if self.recompile is not None else ""

    @property
    def recompiled(self) -> str:
        """The guards that failed; empty where torch named none. The value of a broken expression
        is what Dynamo left on top of a stack."""
        text = failed_guards(self.recompile) if self.recompile is not None else ""
        top = max(_STACK_VALUE.findall(text), default="") if self.broken else ""
        return text.replace(top, self.broken) if top else text


class EagerReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a frame runs eagerly."""

    cause: str
    reason: str
    gb_id: str | None = None


class TreeBreak(msgspec.Struct, kw_only=True, gc=False):
    """A break of a frame, and what it led to."""

    line: int
    """In the frame's own function: the call that leads to the break, or the break itself."""
    gb_id: str | None
    gb_type: str
    outcome: str
    fingerprint: str
    """Of the break's site."""
    file: str
    site_line: int
    function: str
    expression: str = ""
    """What stands at `line` and could not be traced, as its author wrote it."""
    frames: Sequence[int] = ()
    """Functions that were compiled by themselves there, then the rest of the frame."""
    goes_on_in: int | None = None
    """The rest of the frame, where it was compiled after another break already."""


class TreeFrame(msgspec.Struct, kw_only=True, gc=False):
    """A code object that Dynamo compiled or left to eager mode."""

    code: CodeRef
    called_from: Frame | None = None
    through: tuple[Frame, ...] = ()
    """Calls between its parent and it, of functions that ran eagerly and unseen."""
    compilations: Sequence[TreeCompilation] = ()
    eager: Sequence[EagerReason] = ()
    breaks: Sequence[TreeBreak] = ()
    frames: Sequence[int] = ()
    """Functions called in it at no break: it runs eagerly there."""
    parent: int | None = None
    epoch: int = 0
    """How often `torch._dynamo.reset()` had run when it was first seen."""
    ranks: tuple[int, ...] = ()
    times: int = 1
    """How many processes or epochs show the very same."""


def added(members: Sequence[T], one: T) -> Sequence[T]:
    """With one more. Most frames have at most one of a kind, and a long run has a hundred thousand
    frames: those without any share the empty tuple, and a list is for several."""
    if isinstance(members, list):
        members.append(one)
        return members
    return [*members, one] if members else (one,)


class UnplacedItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something of which it is not known where it belongs."""

    what: str
    compile_id: str | None = None
    file: str = ""
    line: int = 0
    rank: int = 0


class CompileTree(msgspec.Struct, frozen=True, kw_only=True):
    """All frames of a run."""

    frames: tuple[TreeFrame, ...]
    roots: tuple[int, ...]
    """Entry points, in order of time."""
    elsewhere: tuple[UnplacedItem, ...]


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
