"""Finds the parent of a frame: the break it resumes after, or the function that called it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame, origin_of
from compilescope.rules.compile_ids import Process
from compilescope.rules.tree.extents import Extents
from compilescope.rules.tree.frames import TreeFrame

Epoch = tuple[Process, int]


class Parent(msgspec.Struct, frozen=True, kw_only=True):
    """Where a frame belongs."""

    frame: int
    at_break: int | None = None
    """Number of the parent's break."""
    through: tuple[Frame, ...] = ()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """How a frame was entered."""

    epoch: Epoch
    thread: int
    callers: tuple[Frame, ...]


class Planting:
    """The frames planted so far, found by function, by code and by stack."""

    def __init__(self, run: Run) -> None:
        self._extents = Extents(run)
        self.frames: list[TreeFrame] = []
        self._by_function: dict[tuple[Epoch, str, str], dict[int, list[int]]] = {}
        """To each first line the frames of that function, in order of time."""
        self._hidden: dict[Call, int] = {}

    def add(self, frame: TreeFrame, call: Call) -> int:
        number = len(self.frames)
        self.frames.append(frame)
        code = frame.code
        lines = self._by_function.setdefault((call.epoch, code.file, code.function), {})
        lines.setdefault(code.line, []).append(number)
        if origin_of(code.file) == "torch" and not code.resumed:
            # Stacks leave out torch's own frames: what it calls shows the same callers.
            self._hidden.setdefault(call, number)
        return number

    def same_code(self, epoch: Epoch, code: CodeRef) -> int | None:
        """The latest frame of this code."""
        parts = self._by_function.get((epoch, code.file, code.function), {}).get(code.line, ())
        for number in reversed(parts):
            if self.frames[number].code.resumed_at == code.resumed_at:
                return number
        return None

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

    def parent(self, code: CodeRef, call: Call) -> Parent | None:
        if code.resumed:
            found = self._resumed(code, call.epoch)
            if found is not None:
                return found
        return self._caller(call)

    def _resumed(self, code: CodeRef, epoch: Epoch) -> Parent | None:
        """The part of the same function that broke there last; else the last that broke at all."""
        broken = None
        for number in self._parts(code, epoch):
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
            first = max((line for line in lines if line <= code.line), default=None)
        return reversed(lines.get(first or 0, ()))

    def _break_at(self, number: int, line: int | None) -> int | None:
        breaks = self.frames[number].breaks
        return next((n for n in reversed(range(len(breaks))) if breaks[n].line == line), None)

    def _caller(self, call: Call) -> Parent | None:
        callers = call.callers
        for depth in range(len(callers), -1, -1):
            through = callers[depth:]
            around = msgspec.structs.replace(call, callers=callers[:depth])
            hidden = self._hidden.get(around) if self._hidden else None
            if hidden is not None:
                # It shows no line of its own: its last break is what let go of the callee.
                last = len(self.frames[hidden].breaks) - 1
                return Parent(frame=hidden, at_break=last if last >= 0 else None, through=through)
            number = self._running(call.epoch, callers[depth - 1]) if depth else None
            if number is not None:
                at_break = self._break_at(number, callers[depth - 1].line)
                return Parent(frame=number, at_break=at_break, through=through)
        return None

    def _running(self, epoch: Epoch, call: Frame) -> int | None:
        """The frame, or the part of one, that runs this line."""
        lines = self._by_function.get((epoch, call.file, call.function))
        if not lines:
            return None
        first = self._extents.first_line(call.file, call.function, call.line)
        if first is None:
            # Without the text: the nearest function of that name above the line.
            first = max((line for line in lines if line <= call.line), default=0)
        parts = [
            number
            for number in lines.get(first, ())
            if (self.frames[number].code.resumed_at or 0) <= call.line
        ]
        for number in reversed(parts):
            if self._break_at(number, call.line) is not None:
                return number
        return max(parts, key=lambda n: (self.frames[n].code.resumed_at or 0, n), default=None)
