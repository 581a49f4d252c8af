"""A grid of levels: as an SVG drawing, and as letters where nothing can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from compilescope.report.blocks import Heatmap

_LETTERS = " .:-=+*#%!"
_CELL_WIDTH, _CELL_HEIGHT = 8, 10
"""Pixels. Chosen: cells that can be told apart, and the widest grid fits a page."""
_MOST_LINES, _MOST_CELLS = 64, 128
"""Chosen: what a page can show; the rest of a larger grid is left out."""


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
