"""Finds the parent of a frame: the break it resumes after, or the function that called it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from itertools import islice

import msgspec

from compilescope.analysis.tree.extents import Extents
from compilescope.analysis.tree.frames import TreeFrame
from compilescope.findings.compile_ids import Process
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame, origin_of

Epoch = tuple[Process, int]
_MOST_PARTS = 200
"""Of one function, the latest, among which the one is looked for that a frame belongs to. Chosen:
it bounds the time for a function that is compiled without end."""


class Parent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a frame belongs."""

    frame: int
    at_break: int | None = None
    """Number of the parent's break."""
    through: tuple[Frame, ...] = ()


class FrameEntry(msgspec.Struct, frozen=True, kw_only=True):
    """How a frame was entered."""

    epoch: Epoch
    thread: int
    callers: tuple[Frame, ...]


class _BreakLines(msgspec.Struct):
    """The breaks of a frame by line. They are only ever added, so each is looked at once."""

    seen: int = 0
    latest: dict[int, int] = {}


class Planting:
    """The frames planted so far, found by function, by code and by stack."""

    def __init__(self, run: Run) -> None:
        self._extents = Extents(run)
        self.frames: list[TreeFrame] = []
        self._by_function: dict[tuple[Epoch, str, str], dict[int, list[int]]] = {}
        """To each first line the frames of that function, in order of time."""
        self._first_lines: dict[tuple[Epoch, str, str], list[int]] = {}
        """Of the functions of each name, in order."""
        self._latest: dict[tuple[Epoch, CodeRef], int] = {}
        self._hidden: dict[FrameEntry, int] = {}
        self._break_lines: dict[int, _BreakLines] = {}

    def add(self, frame: TreeFrame, call: FrameEntry) -> int:
        number = len(self.frames)
        self.frames.append(frame)
        code = frame.code
        function = (call.epoch, code.file, code.function)
        lines = self._by_function.setdefault(function, {})
        if code.line not in lines:
            insort(self._first_lines.setdefault(function, []), code.line)
        lines.setdefault(code.line, []).append(number)
        self._latest[call.epoch, code] = number
        if origin_of(code.file) == "torch" and not code.resumed:
            # Stacks leave out torch's own frames: what it calls shows the same callers.
            self._hidden.setdefault(call, number)
        return number

    def same_code(self, epoch: Epoch, code: CodeRef) -> int | None:
        """The latest frame of this code."""
        return self._latest.get((epoch, code))

    def join_rests(self) -> None:
        """A break after which the frame goes on in code that another break led to already."""
        for (epoch, _, _), lines in self._by_function.items():
            for number in (n for numbers in lines.values() for n in numbers):
                frame = self.frames[number]
                for broken in frame.breaks:
                    below = (self.frames[child].code for child in broken.frames)
                    if broken.outcome == "resumed" and not any(code.resumed for code in below):
                        rest = msgspec.structs.replace(frame.code, resumed_at=broken.line)
                        found = self.same_code(epoch, rest)
                        broken.goes_on_in = found if found != number else None

    def parent(self, code: CodeRef, call: FrameEntry) -> Parent | None:
        if code.resumed:
            found = self._resumed(code, call.epoch)
            if found is not None:
                return found
        return self._caller(call)

    def _resumed(self, code: CodeRef, epoch: Epoch) -> Parent | None:
        """The part of the same function that broke there last; else the last that broke at all."""
        broken = None
        for number in islice(self._parts(code, epoch), _MOST_PARTS):
            at_break = self._break_at(number, code.resumed_at)
            if at_break is not None:
                return Parent(frame=number, at_break=at_break)
            if broken is None and self.frames[number].breaks:
                broken = number
        if broken is None:
            return None
        return Parent(frame=broken, at_break=len(self.frames[broken].breaks) - 1)

    def _parts(self, code: CodeRef, epoch: Epoch) -> Iterator[int]:
        """Frames of the same function, latest first."""
        lines = self._by_function.get((epoch, code.file, code.function), {})
        if code.line != code.resumed_at or code.line in lines:
            return reversed(lines.get(code.line, ()))
        # Only the line at which it goes on is known: the function begins above it.
        first = self._extents.first_line(code.file, code.function, code.line)
        if first is None:
            first = self._nearest((epoch, code.file, code.function), code.line)
        return reversed(lines.get(first or 0, ()))

    def _break_at(self, number: int, line: int | None) -> int | None:
        """The latest break of a frame at this line."""
        breaks = self.frames[number].breaks
        if not breaks or line is None:
            return None
        lines = self._break_lines.setdefault(number, _BreakLines())
        for n in range(lines.seen, len(breaks)):
            lines.latest[breaks[n].line] = n
        lines.seen = len(breaks)
        return lines.latest.get(line)

    def _nearest(self, function: tuple[Epoch, str, str], line: int) -> int | None:
        """The last first line of a function of that name up to this line."""
        lines = self._first_lines.get(function, [])
        at = bisect_right(lines, line)
        return lines[at - 1] if at else None

    def _caller(self, call: FrameEntry) -> Parent | None:
        callers = call.callers
        for depth in range(len(callers), -1, -1):
            through = callers[depth:]
            hidden = self._hidden_at(call, depth)
            if hidden is not None:
                # It shows no line of its own: its last break is what let go of the callee.
                last = len(self.frames[hidden].breaks) - 1
                return Parent(frame=hidden, at_break=last if last >= 0 else None, through=through)
            number = self._running(call.epoch, callers[depth - 1]) if depth else None
            if number is not None:
                at_break = self._break_at(number, callers[depth - 1].line)
                return Parent(frame=number, at_break=at_break, through=through)
        return None

    def _hidden_at(self, call: FrameEntry, depth: int) -> int | None:
        """The frame of torch's own that the outermost callers, so many, led to."""
        if not self._hidden:
            return None
        return self._hidden.get(msgspec.structs.replace(call, callers=call.callers[:depth]))

    def _running(self, epoch: Epoch, call: Frame) -> int | None:
        """The frame, or the part of one, that runs this line."""
        lines = self._by_function.get((epoch, call.file, call.function))
        if not lines:
            return None
        first = self._extents.first_line(call.file, call.function, call.line)
        if first is None:
            # Without the text: the nearest function of that name above the line.
            first = self._nearest((epoch, call.file, call.function), call.line) or 0
        parts = [
            number
            for number in lines.get(first, [])[-_MOST_PARTS:]
            if (self.frames[number].code.resumed_at or 0) <= call.line
        ]
        for number in reversed(parts):
            if self._break_at(number, call.line) is not None:
                return number
        return max(parts, key=lambda n: (self.frames[n].code.resumed_at or 0, n), default=None)
