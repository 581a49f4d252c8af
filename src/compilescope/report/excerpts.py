"""The user's lines at a place, with the expression marked: one line, or some lines around it."""

from __future__ import annotations

from compilescope.findings.breaks import BreakFinding
from compilescope.findings.failures import FailureFinding
from compilescope.findings.finding import Finding
from compilescope.report.blocks import Block, Excerpt, Listing
from compilescope.source.spots import Sources

# Chosen: what a reader needs to know the place again.
_AROUND = 3
_MOST_LINES = 12
"""Of an expression that goes on and on. Chosen likewise."""


def excerpt(found: BreakFinding | FailureFinding | Finding) -> Excerpt:
    """The line. An expression of several lines is marked up to the end of the first."""
    several = found.end_line is not None and found.end_line > found.line
    end = len(found.source.rstrip()) if several else found.end_column
    return Excerpt(found.source, found.column, end)


def listing(found: BreakFinding | FailureFinding, sources: Sources) -> list[Block]:
    """The whole expression, and some lines around it."""
    end = found.end_line or found.line
    blocks = lines_at(
        sources, found.file, found.line, found.source, _AROUND, min(end, found.line + _MOST_LINES)
    )
    return [
        Listing(
            block.first_line,
            block.lines,
            block.marked_line,
            found.column,
            found.end_column,
            end if end > found.line else None,
        )
        for block in blocks
    ]


def lines_at(
    sources: Sources, file: str, line: int, source: str, around: int = 0, end: int = 0
) -> list[Listing]:
    """Some lines around a place; the one line of the stack where there is no more."""
    lines = sources.lines(file)
    if not 0 < line <= len(lines):
        return [Listing(line, (source,), line)] if source.strip() else []
    first = max(1, line - around)
    last = min(len(lines), max(line, end) + around)
    return [Listing(first, tuple(lines[first - 1 : last]), line)]
