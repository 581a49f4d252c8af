"""Turns stacks of torch and of Python into the frames of a record, as the user would write them.

Frames of torch and of compilescope are left out or marked, and resume functions, which Dynamo makes
after a break, get the name of the function that they go on with. The line of a call is looked up in
the table of its code object, which knows where each instruction stands.
"""

from __future__ import annotations

import dis
import functools
import itertools
import linecache
import os
import sys
import traceback
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import torch

from compilescope.base.package import PACKAGE
from compilescope.instrument.torchapi.weak_notes import WeakNotes
from compilescope.record.stack import CodeRef, Frame, Origin, origin_of, plain_function_name

_Slips = list[tuple[int, int]]
_UNREAD: _Slips = []
_NO_SLIPS: _Slips = []
_known: WeakNotes[_Slips] = WeakNotes()
_Place = tuple[int | None, int | None, int | None]
_true_lines: dict[tuple[str, str], dict[_Place, int]] = {}
"""File and name of a resume function -> what Dynamo says of a place in it -> its line."""
_FULL = 8
"""Code units of the largest entry."""
_TORCH_ROOT = os.path.dirname(torch.__file__) + os.sep
_OUR_ROOT = PACKAGE + os.sep
_CONVERT_FRAME = os.path.join("_dynamo", "convert_frame.py")
_EVAL_FRAME = os.path.join("_dynamo", "eval_frame.py")
_TRANSLATOR = "InstructionTranslatorBase"
_MOST_FRAMES = 64
"""The innermost ones. Chosen: every event carries its stack; what is farther out is not told."""
_MOST_SITE = 32
"""Two a frame, the innermost ones. Chosen: loops that differ farther out are one."""
_MOST_ERRORS = 8
"""One behind the other. Chosen: Dynamo wraps an error once or twice."""
_resumed_lines: dict[tuple[str, int, str], int] = {}


@functools.lru_cache(maxsize=4096)
def origin(file: str) -> Origin:
    """As `origin_of`, and sure about a torch that was built in place."""
    return "torch" if file.startswith(_TORCH_ROOT) else origin_of(file)


def code_ref(code: CodeType) -> CodeRef:
    """The code object as its author knows it: a resume function is the function it resumes."""
    name = plain_function_name(code.co_name)
    if name == code.co_name:
        return CodeRef(code.co_filename, code.co_firstlineno, name)
    resumed = _resumed_code(code)
    if resumed is not None:
        key = (code.co_filename, code.co_firstlineno, code.co_name)
        if key not in _resumed_lines:
            _note_lines(code)
        _resumed_lines[key] = resumed.co_firstlineno
    return named_code_ref(code.co_filename, code.co_firstlineno, code.co_name)


def named_code_ref(file: str, first_line: int, name: str) -> CodeRef:
    """As `code_ref`, where torch left only the words. Resume functions seen before are known."""
    plain = plain_function_name(name)
    if plain == name:
        return CodeRef(file, first_line, name)
    line = _resumed_lines.get((file, first_line, name), first_line)
    return CodeRef(file, line, plain, resumed_at=first_line)


def _resumed_code(code: CodeType) -> CodeType | None:
    from torch._dynamo.resume_execution import ContinueExecutionCache

    metadata = ContinueExecutionCache.generated_code_metadata.get(code)
    return None if metadata is None else metadata.code


def frames_of(stack: Iterable[traceback.FrameSummary] | None) -> list[Frame]:
    """The frames of a stack that Dynamo kept."""
    return _collapsed(_traced(stack))


def callers() -> list[Frame]:
    """The user's frames above the compilation that runs now, outermost first."""
    return _collapsed(_live_callers())[-_MOST_FRAMES:]


def full_stack(traced: Iterable[traceback.FrameSummary] | None) -> list[Frame]:
    """The callers, then the frames that Dynamo was tracing."""
    return _collapsed([*_live_callers(), *_traced(traced)])[-_MOST_FRAMES:]


def with_code(frames: list[Frame], code: CodeRef) -> list[Frame]:
    """For what concerns a function as a whole: the stack ends at its first line."""
    return [*frames, _frame(code.file, code.line, code.function, None, None)]


def with_columns(frames: list[Frame], error: BaseException, translator: Any) -> list[Frame]:
    """Fills in columns where the stack has none, from the translators that raised the error.

    torch 2.11 keeps lines only; each translator in the error's traceback, or in that of the error
    behind it, still knows its instruction, and the instruction its place.
    """
    if not frames or frames[-1].column is not None:
        return frames
    places: dict[tuple[str, int], tuple[str, Any]] = {}
    translators = [translator, *translators_of(error)]
    behind = error.__cause__ or error.__context__
    for _ in range(_MOST_ERRORS):
        if behind is None:
            break
        translators += translators_of(behind)
        behind = behind.__cause__ or behind.__context__
    for tx in translators:
        positions = getattr(getattr(tx, "current_instruction", None), "positions", None)
        code = getattr(tx, "f_code", None)
        if positions is not None and code is not None and positions.lineno is not None:
            places[code.co_filename, positions.lineno] = code.co_name, positions
    return [_placed(frame, places.get((frame.file, frame.line))) for frame in frames]


def traced_lines(error: BaseException) -> list[traceback.FrameSummary]:
    """The user's lines that Dynamo was tracing, for an error that Dynamo put no stack on: each
    translator that the error passed through knows its own.

    Before the first instruction, and where the outermost function returns, what fails is the graph
    as a whole: no line is to blame.
    """
    translators = translators_of(error)
    if not translators or _opname(translators[0]).startswith("RETURN"):
        return []
    found = [translator.frame_summary() for translator in translators]
    told = [each for each in found if isinstance(each, traceback.FrameSummary)]
    return told if all((each.lineno or 0) > 0 for each in told) else []


def _opname(translator: Any) -> str:
    return str(getattr(getattr(translator, "current_instruction", None), "opname", ""))


def translators_of(error: BaseException) -> list[Any]:
    """Those that an error passed through, outermost first, each once.

    Other methods of Dynamo's have a `self` too, lazy variables among them: to ask one for any
    attribute makes it real, which may raise (torch 2.11). So classes are told by their names.
    """
    found: list[Any] = []
    trace = error.__traceback__
    while trace is not None:
        owner = trace.tb_frame.f_locals.get("self")
        if any(each.__name__ == _TRANSLATOR for each in type(owner).__mro__) and not any(
            owner is known for known in found
        ):
            found.append(owner)
        trace = trace.tb_next
    return found


def _placed(frame: Frame, place: tuple[str, Any] | None) -> Frame:
    if place is None or frame.column is not None:
        return frame
    name, positions = place
    column, end = positions.col_offset, positions.end_col_offset
    line = true_line(frame.file, name, frame.line, column, end)
    return _frame(frame.file, line, frame.function, column, end)


def region() -> CodeRef | None:
    """The function at which compiled code was entered; None if it is the frame compiled now."""
    frame = entered_frame()
    return None if frame is None else code_ref(frame.f_code)


def entered_frame() -> FrameType | None:
    """The running frame of that function."""
    outermost: FrameType | None = None
    for frame in reversed(_above_dynamo()):
        if frame.f_code.co_filename.endswith(_EVAL_FRAME):
            return outermost
        if not _internal(frame.f_code.co_filename):
            outermost = frame
    return outermost


def call_site() -> tuple[int, ...]:
    """The lines of the program that lead to what is called now, as numbers: the same for calls from
    the same places."""
    found: list[int] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < _MOST_SITE:
        if not _internal(frame.f_code.co_filename):
            found += id(frame.f_code), frame.f_lasti
        frame = frame.f_back
    return tuple(found)


def _above_dynamo() -> list[FrameType]:
    """Live frames outside the compilation, outermost first."""
    live: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        live.append(frame)
        frame = frame.f_back
    live.reverse()
    for number, outer in enumerate(live):
        if _compiles(outer.f_code.co_filename):
            del live[number:]
            break
    return live


@functools.lru_cache(maxsize=4096)
def _compiles(file: str) -> bool:
    """Is it where a compilation begins? Asked of every frame several times a compilation."""
    return file.endswith(_CONVERT_FRAME)


@functools.lru_cache(maxsize=4096)
def _internal(file: str) -> bool:
    return origin(file) in ("torch", "generated", "stdlib") or file.startswith(_OUR_ROOT)


def _live_callers() -> list[tuple[str, Frame]]:
    frames: list[tuple[str, Frame]] = []
    for frame in _above_dynamo():
        code: Any = frame.f_code
        # What lies outside the user's first frame started the program: pytest, a launcher.
        if _internal(code.co_filename) or (not frames and origin(code.co_filename) != "user"):
            continue
        column, end = _columns(code, frame.f_lasti)
        shown = _frame(code.co_filename, _line(frame, column, end), code.co_name, column, end)
        frames.append((code.co_name, shown))
    return frames


def _line(frame: FrameType, column: int | None, end: int | None) -> int:
    code = frame.f_code
    line = frame.f_lineno - slip(code, frame.f_lasti)
    if plain_function_name(code.co_name) == code.co_name or _resumed_code(code) is not None:
        return line
    # Compiled code of a resume function: its lines are those that Dynamo read in the function.
    return true_line(code.co_filename, code.co_name, line, column, end)


_Columns = dict[int, tuple[int | None, int | None]]
_NOWHERE: _Columns = {}
_known_columns: WeakNotes[_Columns] = WeakNotes()
"""Code -> instruction -> its place. Python reads it from the start of the code each time, and a
loop that compiles again and again stands at one place."""


def _columns(code: Any, instruction: int) -> tuple[int | None, int | None]:
    if instruction < 0 or not hasattr(code, "co_positions"):
        return None, None
    known = _known_columns.get(code, _NOWHERE)
    if known is _NOWHERE:
        known = _known_columns[code] = {}
    if instruction not in known:
        at = itertools.islice(code.co_positions(), instruction // 2, None)
        _, _, column, end = next(at, (None, None, None, None))
        known[instruction] = column, end
    return known[instruction]


def _traced(stack: Iterable[traceback.FrameSummary] | None) -> Iterable[tuple[str, Frame]]:
    for summary in stack or ():
        column, end = getattr(summary, "colno", None), getattr(summary, "end_colno", None)
        line = true_line(summary.filename, summary.name, summary.lineno or 0, column, end)
        shown = _frame(summary.filename, line, summary.name, column, end)
        yield summary.name, shown


def _collapsed(named: Iterable[tuple[str, Frame]]) -> list[Frame]:
    """A resume function is called by the function it resumes: to its author they are one frame."""
    kept: list[Frame] = []
    for name, frame in named:
        resumes = name != frame.function
        if resumes and kept and (kept[-1].file, kept[-1].function) == (frame.file, frame.function):
            kept[-1] = frame
        else:
            kept.append(frame)
    return kept


@functools.lru_cache(maxsize=4096)
def _frame(file: str, line: int, name: str, column: int | None, end: int | None) -> Frame:
    source = linecache.getline(file, line).rstrip("\r\n")
    if column is not None and source:
        # Python counts bytes; everybody else counts characters.
        column = _characters(source, column)
        end = _characters(source, end) if end is not None else None
    if end is not None and column is not None and end <= column:
        end = None  # The expression goes on in a later line.
    return Frame(file, line, plain_function_name(name), column, end, source, origin(file))


def _characters(source: str, offset: int) -> int:
    if source.isascii():
        return offset
    return len(source.encode()[:offset].decode(errors="ignore"))


# The lines of code that Dynamo wrote, where its table of lines is wrong.
#
# Python keeps a table of lines with each code object, in entries of at most eight code units.
# Where an instruction is longer (a method that is read at the start of a line: a chain of calls,
# one a line), Dynamo writes its step to the new line once for each entry, so that all that follows
# in a resume function seems to stand too far down, or too far up (seen in torch 2.11 and 2.13 to
# 2.15). Python itself never steps within an instruction: such steps are what is wrong, and by how
# much.


def slip(code: CodeType, instruction: int) -> int:
    """By how many lines the table is wrong at an instruction, which is given by its offset."""
    slips = _slips(code)
    before = bisect_right(slips, instruction // 2, key=lambda each: each[0])
    return slips[before - 1][1] if before else 0


def _note_lines(code: CodeType) -> None:
    """Remembers the lines of a resume function, for stacks that have only its name."""
    if not _slips(code):
        return
    found: dict[_Place, set[int]] = {}
    begun: int | None = None
    for each in dis.get_instructions(code):
        # Dynamo goes by the lines that begin with an instruction, and misses one that the table
        # begins within the instruction before. From Python 3.13 on, each has its line.
        begun = getattr(each, "line_number", each.starts_line) or begun
        at: Any = getattr(each, "positions", None)
        if at is not None and at.lineno is not None:
            line = at.lineno - slip(code, each.offset)
            for told in (begun, at.lineno):
                found.setdefault((told, at.col_offset, at.end_col_offset), set()).add(line)
    # Of two places that Dynamo calls the same, nobody can tell which is meant.
    _true_lines[code.co_filename, code.co_name] = {
        place: lines.pop() for place, lines in found.items() if len(lines) == 1
    }


def true_line(file: str, name: str, line: int, column: int | None, end: int | None) -> int:
    """The line of a place in a function of that name, in Dynamo's words."""
    lines = _true_lines.get((file, name))
    return line if lines is None else lines.get((line, column, end), line)


def _slips(code: CodeType) -> _Slips:
    """Where the table is wrong from: code unit, lines too many."""
    known = _known.get(code, _UNREAD)
    if known is _UNREAD:
        known = _known[code] = _read(code) if hasattr(code, "co_positions") else _NO_SLIPS
    return known


def _read(code: CodeType) -> _Slips:
    entries = list(_entries(code.co_linetable))
    # Few tables have two steps in a row, the first in a full entry: only these are worth the walk.
    if not any(
        first[0] == _FULL and first[1] and first[1] == second[1]
        for first, second in pairwise(entries)
    ):
        return _NO_SLIPS
    starts = {each.offset // 2 for each in dis.get_instructions(code)}
    unit = lines = 0
    slips: _Slips = []
    for units, step in entries:
        if step and unit not in starts:
            lines += step
            slips.append((unit, lines))
        unit += units
    return slips or _NO_SLIPS


def _entries(table: bytes) -> Iterator[tuple[int, int]]:
    """The code units of each entry and its step to another line, by Objects/locations.md of
    CPython."""
    at = 0
    while at < len(table):
        kind, units = (table[at] >> 3) & 15, (table[at] & 7) + 1
        at += 1
        step = kind - 10 if kind in (10, 11, 12) else 0
        if kind in (13, 14):
            number = _varint(table, at)
            step = -(number >> 1) if number & 1 else number >> 1
        while at < len(table) and not table[at] & 128:
            at += 1
        yield units, step


def _varint(table: bytes, at: int) -> int:
    number = shift = 0
    while True:
        number |= (table[at] & 63) << shift
        if not table[at] & 64:
            return number
        at, shift = at + 1, shift + 6
