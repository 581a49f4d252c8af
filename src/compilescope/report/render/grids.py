"""Cells in rows and columns: a matrix of counts, all of it on a page, its first columns where there
is less room; and a heatmap."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from compilescope.report.blocks import Block, Heatmap, Matrix, Span, Table, Words, note, words
from compilescope.report.render.safe_html import is_address

_LETTERS = " .:-=+*#%!"
_CELL_WIDTH, _CELL_HEIGHT = 8, 10
"""Pixels. Chosen: cells that can be told apart, and the widest grid fits a page."""
_MOST_LINES, _MOST_CELLS = 64, 128
"""Chosen: what a page can show; the rest of a larger grid is left out."""
_LABEL = 30
"""Room for a row's name."""
_CELL = 4
"""Columns of a terminal for a count."""
_FEWEST = 3
"""Counts that are shown however narrow it is. Chosen."""
_SHADES = 4
"""Of a cell, by its count. Chosen: more could hardly be told apart."""


def matrix_values(block: Matrix) -> dict[str, Any]:
    """Rows with their sums; each count with a shade, from 1 for the least to 4 for the most."""
    most = max((count for _, counts in block.rows for count in counts), default=0)
    none = ("",) * len(block.rows)
    rows = [
        (label, url, _cells(block, counts, url, most), sum(counts))
        for (label, counts), url in zip(block.rows, _linked(block.row_urls) or none, strict=True)
    ]
    hit = [sum(counts[at] > 0 for _, counts in block.rows) for at in range(len(block.columns))]
    heads = _linked(block.column_urls) or ("",) * len(block.columns)
    return {"rows": rows, "hit": hit, "heads": heads}


def _linked(urls: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(url if is_address(url) else "" for url in urls)


def _cells(
    block: Matrix, counts: tuple[int, ...], url: str, most: int
) -> list[tuple[int, int, str]]:
    """Count, shade and where it leads."""
    queries = block.cell_queries or ("",) * len(counts)
    return [
        (count, _shade(count, most), url + query if url and query and count else "")
        for count, query in zip(counts, queries, strict=True)
    ]


def fitted_table(block: Matrix, width: int) -> list[Block]:
    """Columns go by their numbers, as many as fit; a line says what is left out."""
    shown = min(len(block.columns), max(_FEWEST, (width - _LABEL - 2 * _CELL) // _CELL))
    columns = (block.corner, *(str(number) for number in range(1, shown + 1)), "all")
    rows = tuple(
        (words(label), *(_cell(count) for count in counts[:shown]), words(str(sum(counts))))
        for label, counts in block.rows
    )
    table = Table(columns, rows, tuple(range(1, shown + 2)), one_line=0)
    rest = len(block.columns) - shown
    more = "column is" if rest == 1 else "columns are"
    return [table, *([note(f"{rest} more {more} in the HTML report.")] if rest else [])]


def _cell(count: int) -> Words:
    return words(str(count)) if count else words(Span("·", "dim"))


def _shade(count: int, most: int) -> int:
    return -(-_SHADES * count // most) if count > 0 else 0


# A grid of levels: as an SVG drawing, and as letters where nothing can be drawn.


def heatmap_values(block: Heatmap) -> dict[str, Any]:
    lines = _cut(block)
    return {
        "width": _CELL_WIDTH * max(map(len, lines), default=0),
        "height": _CELL_HEIGHT * len(lines),
        "cells": [cell for row, line in enumerate(lines) for cell in _row(line, row)],
        "legend": _legend(block, ("light", "dark", "violet:")),
    }


def shaded(block: Heatmap) -> list[str]:
    lines = _cut(block)
    edge = "+" + "-" * max(map(len, lines), default=0) + "+"
    inside = ("|" + "".join(_LETTERS[int(c)] for c in line) + "|" for line in lines)
    return [edge, *inside, edge, _legend(block, (".", "%", "!"))]


def _legend(block: Heatmap, marks: tuple[str, str, str]) -> str:
    low, high, odd = marks
    beyond = f"; {odd} {block.beyond}" if any("9" in line for line in block.lines) else ""
    return f"from {block.low} ({low}) to {block.high} ({high}){beyond}"


def _cut(block: Heatmap) -> list[str]:
    """A record may come from anywhere: what is no digit is nothing."""
    lines = (line[:_MOST_CELLS] for line in block.lines[:_MOST_LINES])
    return ["".join(c if c in "0123456789" else "0" for c in line) for line in lines]


def _row(line: str, row: int) -> Iterator[tuple[str, int, int, int, int]]:
    """Level, left, top, width and height of each stretch of equal cells."""
    at = 0
    for level, cells in itertools.groupby(line):
        many = len(list(cells))
        if level != "0":
            yield level, at * _CELL_WIDTH, row * _CELL_HEIGHT, many * _CELL_WIDTH, _CELL_HEIGHT
        at += many
