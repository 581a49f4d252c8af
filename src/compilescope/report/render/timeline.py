"""A timeline, and a tree of times as an icicle, in plain HTML: bars placed by percent, so that it
fits any width and can be stretched.

No library, and no script is needed to read it. The longest bars are elements; the rest are data, of
which the script makes elements where a reader zooms in far enough to see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup, escape

from compilescope.report.blocks import Bar, Cell, Lane, Timeline, Tree
from compilescope.report.render.spans import duration, label_class, round_ticks, taken
from compilescope.texts import encode_json, visible

_CELL_PX = 22
"""Chosen: a line of text and a gap."""
_CELL_KINDS = {
    "function": "function, with everything below it",
    "first": "compilation",
    "break": "compilation ended by a graph break",
    "recompile": "recompile",
    "failed": "failed compilation",
    "eager": "runs eagerly",
}
"""What the legend says of each."""
_ROW_PX = 19
"""Chosen: a line of small text."""
_KINDS = {
    "frame": "compilation",
    "recompile": "recompile",
    "failed": "failed, or fell back to eager",
    "attempt": "attempt: one Dynamo pass over a function",
    "phase": "phase",
    "backend": "backend phase",
    "break": "graph break",
    "cache": "cache lookup",
    "instant": "other event: recompile, failure, eager fallback",
}
"""What the legend says of each."""
_MOST_ELEMENTS = 300
"""Bars of all lanes that a browser lays out when the page opens. Chosen: the longest; with all of
them a page would open slowly."""
_MOST_MOMENTS = 100
"""Chosen: likewise."""
_FIRST_MOMENTS = ("break", "instant", "cache")


def timeline_values(block: Timeline) -> dict[str, Any]:
    whole = max(block.duration_ns, 1)
    seen = {bar.kind for lane in block.lanes for bar in lane.bars}
    elements = _elements(bar for lane in block.lanes for bar in lane.bars)
    return {
        "whole": duration(whole),
        "ticks": [(f"{100 * at / whole:.4f}", text) for at, text in round_ticks(whole)],
        "lanes": [_lane(lane, whole, elements) for lane in block.lanes],
        "kinds": [(kind, text) for kind, text in _KINDS.items() if kind in seen],
    }


def _elements(bars: Iterable[Bar]) -> frozenset[int]:
    """By their place in memory. No bar is longer than the one around it, which so comes first."""
    every = list(bars)
    lasting = sorted((bar for bar in every if bar.duration_ns), key=_longest_first)
    moments = sorted((bar for bar in every if not bar.duration_ns), key=_telling_first)
    return frozenset(map(id, [*lasting[:_MOST_ELEMENTS], *moments[:_MOST_MOMENTS]]))


def _longest_first(bar: Bar) -> tuple[int, int]:
    return -bar.duration_ns, bar.depth


def _telling_first(bar: Bar) -> int:
    return _FIRST_MOMENTS.index(bar.kind) if bar.kind in _FIRST_MOMENTS else len(_FIRST_MOMENTS)


def _lane(lane: Lane, whole: int, elements: frozenset[int]) -> SimpleNamespace:
    deepest = max((bar.depth for bar in lane.bars), default=0)
    return SimpleNamespace(
        title=lane.title,
        height=(deepest + 1) * _ROW_PX,
        bars=[_bar(bar, whole) for bar in lane.bars if id(bar) in elements],
        rest=_data([_bar(bar, whole) for bar in lane.bars if id(bar) not in elements]),
    )


def _bar(bar: Bar, whole: int) -> tuple[str, str, str, str, str]:
    left = 100 * min(max(bar.start_ns, 0) / whole, 1)
    width = 100 * min(bar.duration_ns / whole, 1)
    kind = bar.kind if bar.kind in _KINDS else "phase"
    spent = f": {taken(bar.duration_ns)}" if bar.duration_ns else ""
    about = bar.label + spent + (f"\n{bar.detail}" if bar.detail else "")
    style = f"left:{left:.5f}%;width:{width:.5f}%;top:{bar.depth * _ROW_PX}px"
    return kind + label_class(width), style, visible(about), visible(bar.label), bar.target


def _data(rows: list[tuple[str, str, str, str, str]]) -> Markup:
    """JSON in an attribute, which stands in single quotes so that it stays short."""
    if not rows:
        return Markup("")
    text = str(escape(encode_json(rows).decode()))
    return Markup(text.replace("&#34;", '"'))


# A tree whose times are known, as an icicle: a row a level, cells placed by percent.


def tree_values(block: Tree) -> dict[str, Any]:
    whole = sum(cell.duration_ns for cell in block.cells)
    placed = list(_placed(block.cells, 0, 0)) if whole else []
    seen = {cell.kind for cell, _, _ in placed}
    return {
        "whole": duration(whole),
        "cells": [_values(cell, start, depth, whole) for cell, start, depth in placed],
        "height": (max((depth for _, _, depth in placed), default=0) + 1) * _CELL_PX,
        "kinds": [(kind, text) for kind, text in _CELL_KINDS.items() if kind in seen],
    }


def _placed(cells: tuple[Cell, ...], start: int, depth: int) -> Iterator[tuple[Cell, int, int]]:
    """Each with where it begins and how deep it is, parents before children."""
    for cell in cells:
        yield cell, start, depth
        yield from _placed(cell.cells, start, depth + 1)
        start += cell.duration_ns


def _values(cell: Cell, start: int, depth: int, whole: int) -> tuple[str, str, str, str, str]:
    left, width = 100 * start / whole, 100 * cell.duration_ns / whole
    style = f"left:{left:.4f}%;width:{width:.4f}%;top:{depth * _CELL_PX}px"
    spent = duration(cell.duration_ns)
    about = f"{cell.label}: {spent}" + (f"\n{cell.detail}" if cell.detail else "")
    return cell.kind + label_class(width), style, about, f"{cell.label} · {spent}", cell.target
