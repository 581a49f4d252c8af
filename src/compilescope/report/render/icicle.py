"""A tree whose times are known, as an icicle: a row a level, cells placed by percent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilescope.report.blocks import Cell, Tree
from compilescope.report.render.spans import duration, label_class

_ROW_PX = 22
"""Chosen: a line of text and a gap."""
_KINDS = {
    "function": "function, with everything below it",
    "first": "compilation",
    "break": "compilation ended by a graph break",
    "recompile": "recompile",
    "failed": "failed compilation",
    "eager": "runs eagerly",
}
"""What the legend says of each."""


def tree_values(block: Tree) -> dict[str, Any]:
    whole = sum(cell.duration_ns for cell in block.cells)
    placed = list(_placed(block.cells, 0, 0)) if whole else []
    seen = {cell.kind for cell, _, _ in placed}
    return {
        "whole": duration(whole),
        "cells": [_values(cell, start, depth, whole) for cell, start, depth in placed],
        "height": (max((depth for _, _, depth in placed), default=0) + 1) * _ROW_PX,
        "kinds": [(kind, text) for kind, text in _KINDS.items() if kind in seen],
    }


def _placed(cells: tuple[Cell, ...], start: int, depth: int) -> Iterator[tuple[Cell, int, int]]:
    """Each with where it begins and how deep it is, parents before children."""
    for cell in cells:
        yield cell, start, depth
        yield from _placed(cell.cells, start, depth + 1)
        start += cell.duration_ns


def _values(cell: Cell, start: int, depth: int, whole: int) -> tuple[str, str, str, str, str]:
    left, width = 100 * start / whole, 100 * cell.duration_ns / whole
    style = f"left:{left:.4f}%;width:{width:.4f}%;top:{depth * _ROW_PX}px"
    spent = duration(cell.duration_ns)
    about = f"{cell.label}: {spent}" + (f"\n{cell.detail}" if cell.detail else "")
    return cell.kind + label_class(width), style, about, f"{cell.label} · {spent}", cell.target
