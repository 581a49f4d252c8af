"""Which part of a line is marked, where an expression may go on in the lines after it."""

from __future__ import annotations

from compilescope.report.blocks import Excerpt, Listing, MarkedLine


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
