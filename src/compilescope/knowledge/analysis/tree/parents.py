"""Finds the parent of a frame: the break it resumes after, or the function that called it.

Which function a line is in is read from the text that the run kept.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right, insort

import msgspec

from compilescope.knowledge.analysis.partial_digest import is_long
from compilescope.knowledge.analysis.tree.frames import TreeBreak, TreeFrame, added
from compilescope.knowledge.findings.compile_ids import Process
from compilescope.record.python_text import parse_python
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of

Epoch = tuple[Process, int]


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


class _FunctionFrames:
    """The frames of one function: of its beginning and of what goes on after its breaks.

    A function may be compiled without end, and every frame that it calls asks which part ran.
    """

    __slots__ = ("_breaks", "_broken", "_broken_line", "_first", "_first_at", "_parts")
    _breaks: tuple[dict[int, int], dict[int, int]] | None
    """Of a function that broke at several lines, or before a part of it began: by line the latest
    part that has a break there; and the same, of the parts that begin above the line or at it.
    Nearly always these are all, and then it is the same dictionary."""
    _parts: tuple[list[int], list[int]] | None
    """Of a function that has several: the lines at which they go on, in order, 0 for the beginning;
    and the latest part of each."""

    def __init__(self, number: int, code: CodeRef) -> None:
        # Most functions have one part and no break, and a long run has very many functions.
        self._first_at = code.resumed_at or 0
        self._first = number
        self._parts = None
        self._breaks = None
        self._broken: int | None = None
        """The latest part that has a break."""
        self._broken_line = 0
        """Where there are no `_breaks`: the only line with one."""

    def add(self, number: int, code: CodeRef) -> None:
        line = code.resumed_at or 0
        if self._parts is None:
            if line == self._first_at:
                self._first = number
                return
            self._parts = [self._first_at], [self._first]
        lines, numbers = self._parts
        at = bisect_left(lines, line)
        if lines[at : at + 1] == [line]:
            numbers[at] = number
        else:
            lines.insert(at, line)
            numbers.insert(at, number)

    def latest(self, code: CodeRef) -> int | None:
        """The latest frame of this very part."""
        line = code.resumed_at or 0
        if self._parts is None:
            return self._first if line == self._first_at else None
        lines, numbers = self._parts
        at = bisect_left(lines, line)
        return numbers[at] if lines[at : at + 1] == [line] else None

    def add_break(self, number: int, code: CodeRef, line: int) -> None:
        is_above = (code.resumed_at or 0) <= line
        if self._breaks is None:
            if self._broken is None and is_above:
                self._broken, self._broken_line = number, line
                return
            at = {} if self._broken is None else {self._broken_line: self._broken}
            self._breaks = at, at
        at, below = self._breaks
        if not is_above and below is at:
            below = dict(at)
            self._breaks = at, below
        self._broken = max(number, self._broken or 0)
        at[line] = max(number, at.get(line, 0))
        if is_above:
            below[line] = max(number, below.get(line, 0))

    def broken_at(self, line: int | None) -> int | None:
        """The part that broke there last; else the last that broke at all."""
        found = self._breaks[0].get(line) if self._breaks and line is not None else None
        return found if found is not None else self._broken

    def _broken_below(self, line: int) -> int | None:
        """The part that broke there last, of those that begin above the line or at it."""
        if self._breaks is not None:
            return self._breaks[1].get(line)
        return self._broken if line == self._broken_line else None

    def running(self, line: int) -> int | None:
        """The part that runs a line: one that broke there, else the one that begins nearest above,
        of several the latest."""
        found = self._broken_below(line)
        if found is not None:
            return found
        if self._parts is None:
            return self._first if self._first_at <= line else None
        lines, numbers = self._parts
        at = bisect_right(lines, line)
        return numbers[at - 1] if at else None


class PlacedFrames:
    """The frames placed so far, found by function, by code and by stack."""

    def __init__(self, run: Run) -> None:
        self._extents = Extents(run)
        self.frames: list[TreeFrame] = []
        self._functions: dict[tuple[Epoch, str, str, int], _FunctionFrames] = {}
        """By file, name and first line."""
        self._parts_of: list[_FunctionFrames] = []
        """By frame: those of its function."""
        self._epochs: list[Epoch] = []
        """By frame."""
        self._first_lines: dict[tuple[Epoch, str, str], list[int]] = {}
        """Of the functions of each name, in order."""
        self._hidden: dict[FrameEntry, int] = {}
        self._hidden_depths: set[int] = set()
        """How many callers those have: to look for one reads all its callers."""
        self._break_lines: dict[tuple[int, int], int] = {}
        """By frame and line: its latest break there, of frames that have several."""

    def add(self, frame: TreeFrame, call: FrameEntry) -> int:
        number = len(self.frames)
        self.frames.append(frame)
        code = frame.code
        function = (call.epoch, code.file, code.function)
        place = (*function, code.line)
        parts = self._functions.get(place)
        if parts is None:
            parts = self._functions[place] = _FunctionFrames(number, code)
            lines = self._first_lines.get(function)
            if lines is None:
                self._first_lines[function] = [code.line]
            else:
                insort(lines, code.line)
        else:
            parts.add(number, code)
        self._parts_of.append(parts)
        self._epochs.append(call.epoch)
        if origin_of(code.file) == "torch" and not code.resumed:
            # Stacks leave out torch's own frames: what it calls shows the same callers.
            self._hidden.setdefault(call, number)
            self._hidden_depths.add(len(call.callers))
        return number

    def add_break(self, number: int, broken: TreeBreak) -> None:
        frame = self.frames[number]
        if len(frame.breaks) == 1:
            self._break_lines[number, frame.breaks[0].line] = 0
        if frame.breaks:
            self._break_lines[number, broken.line] = len(frame.breaks)
        frame.breaks = added(frame.breaks, broken)
        self._parts_of[number].add_break(number, frame.code, broken.line)

    def same_code(self, epoch: Epoch, code: CodeRef) -> int | None:
        """The latest frame of this code."""
        parts = self._functions.get((epoch, code.file, code.function, code.line))
        return parts.latest(code) if parts is not None else None

    def join_rests(self) -> None:
        """A break after which the frame goes on in code that another break led to already."""
        for number, frame in enumerate(self.frames):
            for broken in frame.breaks:
                below = (self.frames[child].code for child in broken.frames)
                if broken.outcome == "resumed" and not any(code.resumed for code in below):
                    rest = msgspec.structs.replace(frame.code, resumed_at=broken.line)
                    found = self.same_code(self._epochs[number], rest)
                    broken.goes_on_in = found if found != number else None

    def parent(self, code: CodeRef, call: FrameEntry) -> Parent | None:
        if code.resumed:
            found = self._resumed(code, call.epoch)
            if found is not None:
                return found
        return self._caller(call)

    def _resumed(self, code: CodeRef, epoch: Epoch) -> Parent | None:
        """The part of the same function that broke there last; else the last that broke at all."""
        parts = self._parts(code, epoch)
        number = parts.broken_at(code.resumed_at) if parts is not None else None
        if number is None:
            return None
        at_break = self._break_at(number, code.resumed_at)
        if at_break is None:
            at_break = len(self.frames[number].breaks) - 1
        return Parent(frame=number, at_break=at_break)

    def _parts(self, code: CodeRef, epoch: Epoch) -> _FunctionFrames | None:
        """Frames of the same function."""
        function = (epoch, code.file, code.function)
        found = self._functions.get((*function, code.line))
        if found is not None or code.line != code.resumed_at:
            return found
        # Only the line at which it goes on is known: the function begins above it.
        first = self._extents.first_line(code.file, code.function, code.line)
        if first is None:
            first = self._nearest(function, code.line)
        return self._functions.get((*function, first or 0))

    def _break_at(self, number: int, line: int | None) -> int | None:
        """The latest break of a frame at this line."""
        breaks = self.frames[number].breaks
        if len(breaks) == 1:
            return 0 if breaks[0].line == line else None
        return self._break_lines.get((number, line)) if line is not None else None

    def _nearest(self, function: tuple[Epoch, str, str], line: int) -> int | None:
        """The last first line of a function of that name up to this line."""
        lines = self._first_lines.get(function, [])
        at = bisect_right(lines, line)
        return lines[at - 1] if at else None

    def _caller(self, call: FrameEntry) -> Parent | None:
        callers = call.callers
        for depth in range(len(callers), -1, -1):
            hidden = self._hidden_at(call, depth)
            if hidden is not None:
                # It shows no line of its own: its last break is what let go of the callee.
                last = len(self.frames[hidden].breaks) - 1
                return Parent(
                    frame=hidden, at_break=last if last >= 0 else None, through=callers[depth:]
                )
            number = self._running(call.epoch, callers[depth - 1]) if depth else None
            if number is not None:
                at_break = self._break_at(number, callers[depth - 1].line)
                return Parent(frame=number, at_break=at_break, through=callers[depth:])
        return None

    def _hidden_at(self, call: FrameEntry, depth: int) -> int | None:
        """The frame of torch's own that the outermost callers, so many, led to."""
        if depth not in self._hidden_depths:
            return None
        return self._hidden.get(msgspec.structs.replace(call, callers=call.callers[:depth]))

    def _running(self, epoch: Epoch, call: Frame) -> int | None:
        """The frame, or the part of one, that runs this line."""
        function = (epoch, call.file, call.function)
        if function not in self._first_lines:
            return None
        first = self._extents.first_line(call.file, call.function, call.line)
        if first is None:
            # Without the text: the nearest function of that name above the line.
            first = self._nearest(function, call.line) or 0
        parts = self._functions.get((*function, first))
        return parts.running(call.line) if parts is not None else None


_Extent = tuple[int, int]
_MOST_LETTERS = 3_000_000
"""Of all texts that are parsed for one tree, about 0.3 s each million. Chosen: it bounds the time
that a report takes; functions of later files are told apart by the lines that are known of them, as
where nobody kept the text."""
_LETTERS_OF_LONG = 1_000_000
"""The same of a long run, whose report is slow as it is. Chosen; benchmarks/big_runs.py holds a
page to 10 s."""

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_LAMBDA = "<lambda>"


class Extents:
    """The functions of a run's files, found once each."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._files: dict[tuple[str, bool], dict[str, list[_Extent]]] = {}
        self._room = _LETTERS_OF_LONG if is_long(run) else _MOST_LETTERS

    def first_line(self, file: str, function: str, line: int) -> int | None:
        """Of the innermost function of that name around the line; None where it is not known.

        As for Python, a function begins at its first decorator.
        """
        found = [
            (first, last)
            for first, last in self._functions(file, function == _LAMBDA).get(function, ())
            if first <= line <= last
        ]
        return max(found)[0] if found else None

    def _functions(self, file: str, lambdas: bool) -> dict[str, list[_Extent]]:
        if (file, lambdas) not in self._files:
            text = (self._run.source_of(file) or "") if self._room > 0 else ""
            self._room -= len(text)
            self._files[file, lambdas] = (_lambdas if lambdas else _functions)(text)
        return self._files[file, lambdas]


def _functions(text: str) -> dict[str, list[_Extent]]:
    """Expressions hold no statements: a walk of the statements alone is ten times as fast."""
    found: dict[str, list[_Extent]] = {}
    waiting: list[ast.AST] = [_parsed(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault(node.name, []).append((first, node.end_lineno or first))
        for name in _BODIES:
            below = getattr(node, name, None)
            if isinstance(below, list):
                waiting += below
    return found


def _lambdas(text: str) -> dict[str, list[_Extent]]:
    lambdas = (node for node in ast.walk(_parsed(text)) if isinstance(node, ast.Lambda))
    return {_LAMBDA: [(node.lineno, node.end_lineno or node.lineno) for node in lambdas]}


def _parsed(text: str) -> ast.Module:
    try:
        return parse_python(text)
    except SyntaxError:
        return ast.Module([], [])
