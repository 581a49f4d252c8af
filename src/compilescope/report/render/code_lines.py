"""Lines of code as every format draws them: what is marked, what is folded, what a diff adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Literal

from compilescope.report.blocks import CodeLine, Excerpt, Listing, MarkedLine

DiffKind = Literal["file", "place", "added", "removed", "same"]
"""What a line of a unified diff is: a header, or a line that was added, removed or left."""


def excerpt_part(block: Excerpt) -> tuple[int, int] | None:
    """From where to where its line is marked; None where it is not."""
    return part_of(MarkedLine(1, (), block.column, block.end_column), 1, block.text)


def marked_part(block: Listing, number: int, line: str) -> tuple[int, int] | None:
    """From where to where line `number` of a listing is marked; None where it is not."""
    marked = MarkedLine(block.marked_line, (), block.column, block.end_column, block.end_line)
    return part_of(marked, number, line)


def part_of(marked: MarkedLine, number: int, line: str) -> tuple[int, int] | None:
    """Likewise, for an expression that begins on the marked line."""
    end_line = marked.end_line or marked.line
    if marked.column is None or not marked.line <= number <= end_line:
        return None
    width = len(line.rstrip())
    start = marked.column if number == marked.line else len(line) - len(line.lstrip())
    ends = number == end_line and marked.end_column is not None
    stop = marked.end_column if ends and marked.end_column is not None else width
    # Anyone may have written the run: a place outside of the line is its end.
    start, stop = min(max(start, 0), width), min(stop, width)
    if stop <= start and number != marked.line:
        return None
    return start, max(stop, start + 1)


def folded(lines: Iterable[CodeLine]) -> Iterable[tuple[str, Sequence[CodeLine]]]:
    """What to say instead, empty for nothing, and the lines themselves."""
    for fold, members in groupby(lines, key=lambda line: line.fold):
        run = list(members)
        yield (f"{len(run)} {fold}" if fold else ""), run


def shortened(lines: Iterable[CodeLine]) -> list[CodeLine]:
    """With one line for each fold, for readers who cannot open it."""
    shown: list[CodeLine] = []
    for label, run in folded(lines):
        lead = run[0].text[: len(run[0].text) - len(run[0].text.lstrip())]
        shown += [CodeLine(f"{lead}# {label}")] if label else run
    return shown


def diff_kind(line: str) -> DiffKind:
    if line.startswith(("+++ ", "--- ")):
        return "file"
    if line.startswith("@@"):
        return "place"
    if line.startswith("+"):
        return "added"
    return "removed" if line.startswith("-") else "same"
