"""The lines of code that Dynamo wrote, where its table of lines is wrong.

Python keeps a table of lines with each code object, in entries of at most eight code units. Where
an instruction is longer (a method that is read at the start of a line: a chain of calls, one a
line), Dynamo writes its step to the new line once for each entry, so that all that follows in a
resume function seems to stand too far down, or too far up (seen in torch 2.11 and 2.13 to 2.15).
Python itself never steps within an instruction: such steps are what is wrong, and by how much.
"""

from __future__ import annotations

import dis
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

from compilescope.torchapi.weak_notes import WeakNotes

_Slips = list[tuple[int, int]]
_UNREAD: _Slips = []
_NO_SLIPS: _Slips = []
_known: WeakNotes[_Slips] = WeakNotes()
_Place = tuple[int | None, int | None, int | None]
_true_lines: dict[tuple[str, str], dict[_Place, int]] = {}
"""File and name of a resume function -> what Dynamo says of a place in it -> its line."""
_FULL = 8
"""Code units of the largest entry."""


def slip(code: CodeType, instruction: int) -> int:
    """By how many lines the table is wrong at an instruction, which is given by its offset."""
    slips = _slips(code)
    before = bisect_right(slips, instruction // 2, key=lambda each: each[0])
    return slips[before - 1][1] if before else 0


def note_lines(code: CodeType) -> None:
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
