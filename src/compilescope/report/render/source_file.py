"""A source file with its gutter: rows for a page, lines of text for a terminal or a document.

A page gets one row for each line that lost something, and one for all the lines between two of
them: thousands of lines must not become thousands of elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from markupsafe import Markup

from compilescope.report.blocks import GutterCell, MarkedLine, MarkedLines, SourceFile
from compilescope.report.render.code_colors import Token, code_tokens, line_html
from compilescope.report.render.code_lines import part_of

_AROUND = 2
"""Lines that a terminal shows before and after a loss. Chosen: as little as shows the place."""
_SHORT = {"Compile time": "Compile", "Outside graphs": "Outside", "Recompiles": "Recomp."}
"""Headings where room is scarce."""
_WIDTHS = {
    "Failed": 3.4, "Breaks": 3.6, "Recompiles": 5.3, "Eager": 3.3, "Compile time": 5.8,
    "Outside graphs": 6.6, "Kernels": 5.8,
}  # fmt: skip
"""Of the columns, in rem."""
_KINDS = {"graph": "captured in a graph", "eager": "ran eagerly", "both": "some of each"}
_STROKES = {"graph": "│", "eager": "┃", "both": "╎"}


class _Row(msgspec.Struct):
    """Lines side by side with their numbers; one alone where it is marked."""

    numbers: str
    code: Markup
    stripe: str = ""
    anchor: str = ""
    cells: list[tuple[GutterCell | None, float]] = []


class _Gutter(msgspec.Struct, frozen=True):
    """What there is to say of the lines of a file, by their numbers."""

    marked: dict[int, MarkedLine]
    stripes: dict[int, str]
    underlined: dict[int, MarkedLine]


def source_file_values(block: SourceFile) -> dict[str, Any]:
    last = max((part.first_line + len(part.lines) for part in block.stretches), default=1) - 1
    kinds = [kind for kind in _KINDS if any(each.kind == kind for each in block.stripes)]
    gutter = _Gutter(
        {line.line: line for line in block.marked}, _stripes(block), _underlined(block, last)
    )
    return {
        "parts": [list(_rows(part, block, gutter)) for part in block.stretches],
        "heads": [(name, _SHORT.get(name, name), _width(name)) for name in block.columns],
        "gutter": f"{sum(map(_width, block.columns)):.1f}",
        "digits": len(str(last)),
        "legend": [(kind, _KINDS[kind]) for kind in kinds],
        "ticks": list(_ticks(block)) if len(block.stretches) == 1 else [],
    }


def _width(column: str) -> float:
    return _WIDTHS.get(column, 6.0)


def _rows(part: MarkedLines, block: SourceFile, gutter: _Gutter) -> Iterator[_Row]:
    marked = gutter.marked
    numbers: list[str] = []
    lines: list[Markup] = []
    stripe = ""
    tokens = code_tokens("\n".join(part.lines))
    for number, (text, pieces) in enumerate(zip(part.lines, tokens, strict=False), part.first_line):
        kind = gutter.stripes.get(number, "")
        if numbers and (number in marked or kind != stripe):
            yield _Row("\n".join(numbers), Markup("\n").join(lines), stripe)
            numbers, lines = [], []
        stripe = kind
        html = _code(gutter, number, text, pieces)
        if number in marked:
            yield _marked_row(block, marked[number], html, kind)
        else:
            numbers.append(str(number))
            lines.append(html)
    if numbers:
        yield _Row("\n".join(numbers), Markup("\n").join(lines), stripe)


def _stripes(block: SourceFile) -> dict[int, str]:
    return {n: each.kind for each in block.stripes for n in range(each.first, each.last + 1)}


def _underlined(block: SourceFile, last: int) -> dict[int, MarkedLine]:
    """By line of the file: the first expression that stands on it."""
    found: dict[int, MarkedLine] = {}
    reached = 0
    for line in block.marked:
        if line.column is not None:
            end = min(line.end_line or line.line, last)
            found.update((n, line) for n in range(max(line.line, reached + 1), end + 1))
            reached = max(reached, end)
    return found


def _code(gutter: _Gutter, number: int, text: str, pieces: list[Token]) -> Markup:
    for line in (gutter.underlined.get(number), gutter.marked.get(number)):
        part = part_of(line, number, text) if line is not None else None
        if part is not None:
            return line_html(pieces, *part)
    return line_html(pieces)


def _marked_row(block: SourceFile, line: MarkedLine, html: Markup, stripe: str) -> _Row:
    by_column = {cell.column: cell for cell in line.cells}
    cells = [(by_column.get(name), _width(name)) for name in block.columns] if line.cells else []
    return _Row(str(line.line), html, stripe, f"line-{block.number}-{line.line}", cells)


def _ticks(block: SourceFile) -> Iterator[tuple[str, str, str]]:
    """Where in the file the losses are, beside the scroll bar: anchor, percent, what it says."""
    (part,) = block.stretches
    for line in block.marked:
        if line.cells:
            top = 100 * (line.line - part.first_line) / max(len(part.lines), 1)
            yield f"line-{block.number}-{line.line}", f"{top:.2f}", f"line {line.line}"


def near_losses(block: SourceFile) -> list[list[tuple[int, str]]]:
    """Numbered lines: those that lost something and some around each, in runs."""
    texts = {
        number: text
        for part in block.stretches
        for number, text in enumerate(part.lines, part.first_line)
    }
    wanted = {
        number
        for line in block.marked
        if line.cells
        for number in range(line.line - _AROUND, (line.end_line or line.line) + _AROUND + 1)
    }
    runs: list[list[tuple[int, str]]] = []
    for number in sorted(wanted & set(texts)):
        if not runs or runs[-1][-1][0] != number - 1:
            runs.append([])
        runs[-1].append((number, texts[number]))
    return runs


class TextLine(msgspec.Struct):
    """A line of the view in plain text."""

    gutter: str
    number: str
    stroke: str
    text: str
    kind: str = ""
    lost: bool = False
    carets: tuple[int, int] | None = None
    """From where to where the line's expression stands."""


def text_lines(block: SourceFile) -> Iterator[TextLine]:
    """The headings of the gutter, then the lines near losses; runs are parted by an ellipsis."""
    marked = {line.line: line for line in block.marked}
    kinds = _stripes(block)
    heads = [_SHORT.get(name, name) for name in block.columns]
    widths = [
        max([len(head), *(len(c.text) for m in block.marked for c in m.cells if c.column == name)])
        for head, name in zip(heads, block.columns, strict=True)
    ]
    runs = near_losses(block)
    digits = max((len(str(run[-1][0])) for run in runs), default=1)
    yield TextLine(_cells(heads, widths), " " * digits, " ", "")
    for index, run in enumerate(runs):
        if index:
            yield TextLine(_cells([""] * len(heads), widths), "⋯".rjust(digits), " ", "")
        for number, text in run:
            line = marked.get(number)
            texts = {cell.column: cell.text for cell in line.cells} if line is not None else {}
            gutter = _cells([texts.get(name, "") for name in block.columns], widths)
            stroke = _STROKES.get(kinds.get(number, ""), "│")
            part = part_of(line, number, text) if line is not None else None
            yield TextLine(
                gutter,
                str(number).rjust(digits),
                stroke,
                text.expandtabs(1),
                kinds.get(number, ""),
                bool(texts),
                part,
            )


def _cells(texts: list[str], widths: list[int]) -> str:
    return "  ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))
