"""Reads the lines of event files so that what is equal in them is one object.

A long job says the same over and over: the same stacks, the same frames, the same break with the
same explanation. Reading each of them anew takes most of the time and nearly all of the memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar, Union, get_args

import msgspec
from msgspec.structs import force_setattr

from compilescope.record.bodies import (
    Body,
    CompilePhases,
    CompileTime,
    FailedGuard,
    GraphBreak,
    Recompile,
)
from compilescope.record.event import Event, UnreadableLine, decode, may_have_long_number
from compilescope.record.stack import Frame
from compilescope.record.values import ValueFact

T = TypeVar("T")
_MOST_BYTES = 8 << 20
"""Of lines whose reading is kept, for each of stacks, frames, bodies and values. Chosen: past it
all is forgotten, which costs time and changes nothing."""
_MOST_SHARED = 200_000
"""Values. Chosen likewise."""
_MOSTLY_NEW = 0.75
"""Of a batch's bodies. Chosen: where so many are new, to look for the others costs more than to
read all."""
_BATCHES_READ_AT_ONCE = 15
"""After one that was mostly new. Chosen: then what repeats is looked for again."""
_CODE_FIELDS = ("frame", "region", "within")
_GUARD_FIELDS = ("guard", "subject", "expected", "actual", "kind", "frame")
_FRAME_FIELDS = ("file", "function", "source")
_PHASE_FIELDS = ("name", "detail", "compile_id")
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


_Number = Annotated[int, msgspec.Meta(gt=-(2**63), lt=2**63 - 1)]


class _Line(msgspec.Struct, kw_only=True):
    """An event whose stack and body are still text."""

    id: str
    time_ns: _Number
    pid: _Number
    rank: _Number = 0
    thread: _Number = 0
    epoch: _Number = 0
    compile_id: str | None = None
    test: str | None = None
    stack: msgspec.Raw = msgspec.Raw(b"[]")
    body: msgspec.Raw


class _BreakLine(GraphBreak, frozen=True, tag="GraphBreak"):
    """A graph break whose values are still text: there may be dozens, and the next break on the
    same line has the same."""

    values: msgspec.Raw = msgspec.Raw(b"{}")  # type: ignore[assignment]


_NEW_BODY: Any = Union[tuple(_BreakLine if kind is GraphBreak else kind for kind in get_args(Body))]  # noqa: UP007
_line = msgspec.json.Decoder(_Line)
_body: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_NEW_BODY)
_frame = msgspec.json.Decoder(Frame)
_values = msgspec.json.Decoder(dict[str, ValueFact])
_frames = msgspec.json.Decoder(tuple[msgspec.Raw, ...])
_break_parts = attrgetter(*GraphBreak.__struct_fields__)


@functools.cache
def _read_line() -> msgspec.json.Decoder[Any]:
    """Of events whose stacks alone are still text; few runs are so long that they need it."""
    return msgspec.json.Decoder(
        msgspec.defstruct("_ReadLine", [("body", _NEW_BODY)], bases=(_Line,), kw_only=True)
    )


def _decoded(decoder: msgspec.json.Decoder[T], texts: Iterable[bytes]) -> list[T]:
    """Of each text its value, all in one call. What may hold a number that only Python could is
    left to `decode`."""
    joined = b"\n".join(texts)
    if may_have_long_number(joined):
        raise msgspec.DecodeError("perhaps a number is too large")
    return decoder.decode_lines(joined)


class _Known(Generic[T]):
    """What texts were read as. It begins anew when it has grown too large."""

    def __init__(self) -> None:
        self._known: dict[bytes, T] = {}
        self._bytes = 0
        self.new = 0
        """Of the texts that were asked for last."""

    def of(self, texts: list[bytes], read: Callable[[Collection[bytes]], Iterable[T]]) -> list[T]:
        """`read`: those that are not known yet. It is not kept: a decoder must go when its reader
        does, and nobody looks for circles meanwhile."""
        known = self._known
        new = dict.fromkeys([text for text in texts if text not in known])
        self.new = len(new)
        if not new:
            return [known[text] for text in texts]
        made = dict(zip(new, read(new), strict=True))
        found = [made[text] if text in made else known[text] for text in texts]
        self._bytes += sum(map(len, made))
        if self._bytes > _MOST_BYTES:
            known.clear()
            self._bytes = sum(map(len, made))
        known.update(made)
        return found


class SharingDecoder:
    """As `decode`, line by line: the events are equal to those, and share what is equal."""

    def __init__(self) -> None:
        self._stacks = _Known[tuple[Frame, ...]]()
        self._frames = _Known[Frame]()
        self._bodies = _Known[Body]()
        self._values = _Known[dict[str, ValueFact]]()
        self._shared: dict[Any, Any] = {}
        self._one: Callable[[T, T], T] = self._shared.setdefault
        """Of a value, twice: the first that was equal to it. Called some ten times an event."""
        self._at_once = 0
        """So many batches are read without looking for bodies that are known already."""

    def decode(self, line: bytes) -> Event:
        try:
            return self._events([_line.decode(line)])[0]
        except _BROKEN:
            # A kind of another version, or no event at all.
            return decode(line)

    def decode_lines(self, lines: bytes) -> list[Event]:
        """As `decode` of each; UnreadableLine where that may be anything but a plain event."""
        try:
            if self._at_once:
                self._at_once -= 1
                if not may_have_long_number(lines):
                    whole = _read_line().decode_lines(lines)
                    if len(whole) == _line_ends(lines):
                        bodies = self._shared_bodies([line.body for line in whole])
                        return self._with_bodies(whole, bodies)
            read = _line.decode_lines(lines)
            # Between values any space will do for JSON lines; for events only the end of a line.
            if len(read) == _line_ends(lines):
                return self._events(read)
        except _BROKEN:
            pass
        raise UnreadableLine("not every line is an event of this version")

    def _events(self, lines: list[_Line]) -> list[Event]:
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        bodies = self._bodies.of([bytes(line.body) for line in lines], self._new_bodies)
        if self._bodies.new > _MOSTLY_NEW * len(lines):
            self._at_once = _BATCHES_READ_AT_ONCE
        return self._with_bodies(lines, bodies)

    def _with_bodies(self, lines: Sequence[_Line], bodies: Sequence[Body]) -> list[Event]:
        one = self._one
        stacks = self._stacks.of([bytes(line.stack) for line in lines], self._new_stacks)
        return [
            Event(
                id=line.id,
                time_ns=line.time_ns,
                pid=one(line.pid, line.pid),
                rank=line.rank,
                thread=one(line.thread, line.thread),
                epoch=line.epoch,
                compile_id=one(line.compile_id, line.compile_id),
                test=one(line.test, line.test),
                stack=stack,
                body=body,
            )
            for line, stack, body in zip(lines, stacks, bodies, strict=True)
        ]

    def _new_stacks(self, lists: Collection[bytes]) -> Iterator[tuple[Frame, ...]]:
        stacks = _frames.decode_lines(b"\n".join(lists))
        texts = [bytes(each) for stack in stacks for each in stack]
        frames = iter(self._frames.of(texts, self._new_frames))
        return (tuple(islice(frames, len(stack))) for stack in stacks)

    def _new_frames(self, texts: Collection[bytes]) -> list[Frame]:
        frames = _decoded(_frame, texts)
        for frame in frames:
            self._share_fields(frame, _FRAME_FIELDS)
        return frames

    def _new_bodies(self, texts: Collection[bytes]) -> list[Body]:
        return self._shared_bodies(_decoded(_body, texts))

    def _shared_bodies(self, bodies: list[Any]) -> list[Body]:
        broken = [body for body in bodies if type(body) is _BreakLine]
        values = iter(self._values.of([bytes(line.values) for line in broken], self._new_values))
        for number, body in enumerate(bodies):
            kind = type(body)
            if kind is _BreakLine:
                bodies[number] = self._break(body, next(values))
            elif kind is Recompile:
                self._share_recompile(body)
            elif kind is CompileTime:
                self._share_time(body)
            else:
                self._share(body)
        return bodies

    def _new_values(self, texts: Collection[bytes]) -> list[dict[str, ValueFact]]:
        one = self._one
        return [
            {name: one(each, each) for name, each in values.items()}
            for values in _decoded(_values, texts)
        ]

    def _break(self, line: _BreakLine, values: dict[str, ValueFact]) -> GraphBreak:
        *parts, _ = _break_parts(line)
        # What torch says in long words, and names of code: nothing that is equal to another kind.
        shared: list[Any] = [*map(self._one, parts, parts), values]
        return GraphBreak(*shared)

    def _share(self, body: Body) -> None:
        """The parts of a new body that others have too."""
        self._share_fields(body, _fields_shared(type(body)))
        if isinstance(body, CompilePhases):
            for phase in body.phases:
                self._share_fields(phase, _PHASE_FIELDS)

    # The same, without a call for each field: nearly all events of a storm are these two.

    def _share_recompile(self, body: Recompile) -> None:
        one = self._one
        force_setattr(body, "frame", one(body.frame, body.frame))
        for entry in body.entries:
            failed = one(entry.failed, entry.failed)
            if failed is not entry.failed:
                force_setattr(entry, "failed", failed)
            else:  # The first of its kind.
                for guard in failed:
                    self._share_guard(guard)
            if entry.reason:
                force_setattr(entry, "reason", one(entry.reason, entry.reason))

    def _share_guard(self, guard: FailedGuard) -> None:
        frame = guard.frame
        self._share_fields(guard, _GUARD_FIELDS)
        if frame is not None and guard.frame is frame:
            self._share_fields(frame, _FRAME_FIELDS)

    def _share_time(self, body: CompileTime) -> None:
        one = self._one
        phases = body.phases_us
        names = map(one, phases, phases)
        force_setattr(body, "phases_us", dict(zip(names, phases.values(), strict=True)))
        if body.frame is not None:
            force_setattr(body, "frame", one(body.frame, body.frame))
        if body.restarts:
            force_setattr(body, "restarts", one(body.restarts, body.restarts))

    def _share_fields(self, record: msgspec.Struct, names: tuple[str, ...]) -> None:
        for name in names:
            value = getattr(record, name)
            found = self._one(value, value)
            if found is not value:
                force_setattr(record, name, found)


def _line_ends(lines: bytes) -> int:
    """Five times as fast as `count`, and asked of every byte of a run."""
    return len(lines) - len(lines.replace(b"\n", b""))


@functools.cache
def _fields_shared(kind: type[Body]) -> tuple[str, ...]:
    """Names of code objects."""
    return tuple(name for name in kind.__struct_fields__ if name in _CODE_FIELDS)
