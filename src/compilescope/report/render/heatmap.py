"""A grid of levels: as an SVG drawing, and as letters where nothing can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from compilescope.report.blocks import Heatmap

_LETTERS = " .:-=+*#%!"
_CELL_WIDTH, _CELL_HEIGHT = 8, 10
_MOST_LINES, _MOST_CELLS = 64, 128


def draw_heatmap(block: Heatmap, clean: Callable[[str], str]) -> str:
    lines = _cut(block)
    width = _CELL_WIDTH * max(map(len, lines), default=0)
    height = _CELL_HEIGHT * len(lines)
    rectangles = "".join(_row(line, row) for row, line in enumerate(lines))
    legend = clean(_legend(block, ("light", "dark", "violet:")))
    return (
        f'<figure class="heatmap"><svg viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{legend}">'
        f'<rect class="ground" width="{width}" height="{height}"/>{rectangles}</svg>'
        f'<figcaption class="dim">{legend}</figcaption></figure>'
    )


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


def _row(line: str, row: int) -> str:
    parts, at = [], 0
    for level, cells in itertools.groupby(line):
        many = len(list(cells))
        if level != "0":
            parts.append(
                f'<rect class="l{level}" x="{at * _CELL_WIDTH}" y="{row * _CELL_HEIGHT}" '
                f'width="{many * _CELL_WIDTH}" height="{_CELL_HEIGHT}"/>'
            )
        at += many
    return "".join(parts)
