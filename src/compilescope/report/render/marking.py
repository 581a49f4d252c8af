"""Which part of a line is marked, where an expression may go on in the lines after it."""

from __future__ import annotations

from compilescope.report.blocks import Listing


def marked_part(block: Listing, number: int, line: str) -> tuple[int, int] | None:
    """From where to where line `number` of a listing is marked; None where it is not."""
    end_line = block.end_line or block.marked_line
    if block.column is None or not block.marked_line <= number <= end_line:
        return None
    width = len(line.rstrip())
    start = block.column if number == block.marked_line else len(line) - len(line.lstrip())
    ends = number == end_line and block.end_column is not None
    stop = block.end_column if ends and block.end_column is not None else width
    if stop <= start and number != block.marked_line:
        return None
    return start, max(stop, start + 1)
