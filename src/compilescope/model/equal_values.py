"""Reads the lines of event files so that what is equal in them is one object.

A long job says the same over and over: the same stacks, the same frames, the same break with the
same explanation. Reading each of them anew takes most of the time and nearly all of the memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Any, TypeVar, Union, get_args

import msgspec
from msgspec.structs import force_setattr

from compilescope.model.bodies import (
    Body,
    CompilePhases,
    CompileTime,
    FailedGuard,
    GraphBreak,
    Recompile,
)
from compilescope.model.event import Event, UnreadableLine, decode, may_have_long_number
from compilescope.model.stack import Frame
from compilescope.model.values import ValueFact

T = TypeVar("T")
_MOST_BYTES = 8 << 20
"""Of lines whose reading is kept, for each of stacks, frames, bodies and values. Chosen: past it
all is forgotten, which costs time and changes nothing."""
_MOST_SHARED = 200_000
"""Values. Chosen likewise."""
_CODE_FIELDS = ("frame", "region", "within")
_TEXT_FIELDS: dict[Any, tuple[str, ...]] = {CompileTime: ("restarts",)}
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


class _Careful:
    """Leaves to `decode` what may hold a number that only Python could."""

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)

    def decode(self, text: bytes) -> Any:
        if may_have_long_number(text):
            raise msgspec.DecodeError("perhaps a number is too large")
        return self._decoder.decode(text)


_line = msgspec.json.Decoder(_Line)
_body = _Careful(
    Union[tuple(_BreakLine if kind is GraphBreak else kind for kind in get_args(Body))]  # noqa: UP007
)
_frame = _Careful(Frame)
_values = msgspec.json.Decoder(dict[str, ValueFact])
"""Of a body that `_Careful` has looked at."""
_break_parts = attrgetter(*GraphBreak.__struct_fields__)
_frames = msgspec.json.Decoder(tuple[msgspec.Raw, ...])


class _Read:
    """What texts were read as. It begins anew when it has grown too large."""

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}
        self._bytes = 0

    def get(self, text: bytes) -> Any:
        return self._known.get(text)

    def keep(self, text: bytes, value: Any) -> None:
        self._bytes += len(text)
        if self._bytes > _MOST_BYTES:
            self._known.clear()
            self._bytes = len(text)
        self._known[text] = value


class SharingDecoder:
    """As `decode`, line by line: the events are equal to those, and share what is equal."""

    def __init__(self) -> None:
        self._stacks, self._frames, self._bodies = _Read(), _Read(), _Read()
        self._values = _Read()
        self._shared: dict[Any, Any] = {}
        self._one: Callable[[T, T], T] = self._shared.setdefault
        """Of a value, twice: the first that was equal to it. Called some ten times an event."""

    def decode(self, line: bytes) -> Event:
        try:
            return self._event(_line.decode(line))
        except _BROKEN:
            # A kind of another version, or no event at all.
            return decode(line)

    def decode_lines(self, lines: bytes) -> list[Event]:
        """As `decode` of each; UnreadableLine where that may be anything but a plain event."""
        try:
            read = _line.decode_lines(lines)
            # Between values any space will do for JSON lines; for events only the end of a line.
            if len(read) == _line_ends(lines):
                return list(map(self._event, read))
        except _BROKEN:
            pass
        raise UnreadableLine("not every line is an event of this version")

    def _event(self, read: _Line) -> Event:
        if len(self._shared) > _MOST_SHARED:
            self._shared.clear()
        one = self._one
        return Event(
            id=read.id,
            time_ns=read.time_ns,
            pid=one(read.pid, read.pid),
            rank=read.rank,
            thread=one(read.thread, read.thread),
            epoch=read.epoch,
            compile_id=one(read.compile_id, read.compile_id),
            test=one(read.test, read.test),
            stack=self._stack(bytes(read.stack)),
            body=self._body(bytes(read.body)),
        )

    def _stack(self, text: bytes) -> tuple[Frame, ...]:
        found: tuple[Frame, ...] | None = self._stacks.get(text)
        if found is None:
            found = tuple(self._frame(bytes(each)) for each in _frames.decode(text))
            self._stacks.keep(text, found)
        return found

    def _frame(self, text: bytes) -> Frame:
        found: Frame | None = self._frames.get(text)
        if found is None:
            found = _frame.decode(text)
            self._share_fields(found, _FRAME_FIELDS)
            self._frames.keep(text, found)
        return found

    def _body(self, text: bytes) -> Body:
        found: Body | None = self._bodies.get(text)
        if found is None:
            read = _body.decode(text)
            if type(read) is _BreakLine:
                found = self._break(read)
            else:
                self._share(read)
                found = read
            self._bodies.keep(text, found)
        return found

    def _break(self, line: _BreakLine) -> GraphBreak:
        *parts, raw = _break_parts(line)
        text = bytes(raw)
        values = self._values.get(text)
        if values is None:
            values = {name: self._one(each, each) for name, each in _values.decode(text).items()}
            self._values.keep(text, values)
        # What torch says in long words, and names of code: nothing that is equal to another kind.
        shared: list[Any] = [*map(self._one, parts, parts), values]
        return GraphBreak(*shared)

    def _share(self, body: Body) -> None:
        """The parts of a new body that others have too."""
        self._share_fields(body, _fields_shared(type(body)))
        if isinstance(body, Recompile):
            for entry in body.entries:
                failed = tuple([self._guard(each) for each in entry.failed])
                force_setattr(entry, "failed", self._one(failed, failed))
                force_setattr(entry, "reason", self._one(entry.reason, entry.reason))
        elif isinstance(body, CompileTime):
            force_setattr(
                body, "phases_us", {self._one(k, k): v for k, v in body.phases_us.items()}
            )
        elif isinstance(body, CompilePhases):
            for phase in body.phases:
                self._share_fields(phase, _PHASE_FIELDS)

    def _guard(self, failed: FailedGuard) -> FailedGuard:
        found = self._one(failed, failed)
        if found is failed:
            frame = failed.frame
            self._share_fields(failed, _GUARD_FIELDS)
            if frame is not None and failed.frame is frame:  # The first that is equal to it.
                self._share_fields(frame, _FRAME_FIELDS)
        return found

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
    """Names of code objects, and what torch says in the same long words again and again."""
    known = (*_CODE_FIELDS, *_TEXT_FIELDS.get(kind, ()))
    return tuple(name for name in kind.__struct_fields__ if name in known)
