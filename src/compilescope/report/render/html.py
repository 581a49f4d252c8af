"""Blocks as HTML: a template each, which escapes all that it prints.

`to_html` makes the fragment that a notebook shows; `render.page` makes a page of the same blocks.

Timelines and icicles are plain HTML too: bars placed by percent, no library, and no script is
needed to read them. The longest bars are elements; the rest are data, of which the script makes
elements where a reader zooms in far enough to see them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from markupsafe import Markup, escape

from compilescope.base.texts import encode_json, visible
from compilescope.report.blocks import (
    Bar,
    Block,
    Branch,
    Cell,
    Diff,
    Document,
    Excerpt,
    Item,
    Lane,
    Listing,
    Part,
    SourceFile,
    Span,
    Timeline,
    Tree,
    Words,
)
from compilescope.report.render.code_colors import code_tokens, line_html
from compilescope.report.render.code_lines import diff_kind, marked_part
from compilescope.report.render.compressed_code import panes_values
from compilescope.report.render.drawn import blocks as drawn_blocks
from compilescope.report.render.drawn import frames as drawn_frames
from compilescope.report.render.portions import portion_values
from compilescope.report.render.safe_html import clean, is_address
from compilescope.report.render.source_file import source_file_values
from compilescope.report.render.spans import duration, label_class, round_ticks, taken
from compilescope.report.render.visible_blocks import cleaned

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
_BAR_KINDS = {
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


def _timeline_values(block: Timeline) -> dict[str, Any]:
    whole = max(block.duration_ns, 1)
    seen = {bar.kind for lane in block.lanes for bar in lane.bars}
    elements = _elements(bar for lane in block.lanes for bar in lane.bars)
    return {
        "whole": duration(whole),
        "ticks": [(f"{100 * at / whole:.4f}", text) for at, text in round_ticks(whole)],
        "lanes": [_lane(lane, whole, elements) for lane in block.lanes],
        "kinds": [(kind, text) for kind, text in _BAR_KINDS.items() if kind in seen],
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
    kind = bar.kind if bar.kind in _BAR_KINDS else "phase"
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


_HERE = Path(__file__).parent
_VALUES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "diff": lambda block: {"lines": _diff_lines(block)},
    "excerpt": lambda block: {"line": _excerpt_line(block)},
    "curves": lambda block: _curves_values(block),
    "heatmap": lambda block: _heatmap_values(block),
    "listing": lambda block: {"lines": _listing_lines(block)},
    "matrix": lambda block: _matrix_values(block),
    "measures": lambda block: _measure_values(block),
    "panes": panes_values,
    "portions": portion_values,
    "roofline": lambda block: _roofline_values(block),
    "sourcefile": source_file_values,
    "timeline": _timeline_values,
    "tree": tree_values,
    "trend": lambda block: _trend_values(block),
}
"""What a template needs beside its block."""
_DRAWN = {**drawn_blocks.DRAWN, **drawn_frames.DRAWN}


def to_html(document: Document) -> str:
    """For a notebook, which may show several: anchors begin with the run's id."""
    return draw_template(
        "fragment",
        document=document,
        style=_notebook_styles(),
        prefix=clean(f"{document.record.run}-" if document.record.run else ""),
        amount=amount,
    )


def to_fragment(blocks: Iterable[Block]) -> str:
    """Blocks alone, for a notebook."""
    return draw_template("blocks_alone", blocks=tuple(blocks), style=_notebook_styles())


def amount(part: Part) -> int:
    """How many entries a section has; 0 where they are not what its title counts: a recompiled
    function has several recompiles, and equal graphs are one entry."""
    if part.id in ("recompiles", "graphs"):
        return 0
    return sum(isinstance(block, Item) for block in part.blocks)


@functools.cache
def _notebook_styles() -> Markup:
    from compilescope.report.render.notebook import following_the_notebook

    return Markup(following_the_notebook(styles(page=False)))


def draw(blocks: Iterable[Block], prefix: str = "") -> Markup:
    """`prefix` keeps the anchors of several documents on one page apart."""
    return Markup("".join(_block(block, prefix) for block in blocks))


def draw_template(name: str, **values: Any) -> str:
    return _drawing(name)({"draw": draw, "spans": _spans, "targets": _targets, **values})


@functools.cache
def styles(*, page: bool) -> Markup:
    """The stylesheet of all blocks; a page has one more, around them."""
    names = (path for path in sorted((_HERE / "styles").glob("*.css")) if path.stem != "page")
    return _joined([*names, *([_HERE / "styles" / "page.css"] if page else [])])


@functools.cache
def scripts() -> Markup:
    """The page's one script: what each block can do is a file of its own."""
    return _joined(sorted((_HERE / "scripts").glob("*.js")))


def _joined(paths: Iterable[Path]) -> Markup:
    """Our own files, so they stand as they are."""
    return Markup("".join(path.read_text(encoding="utf-8") for path in paths))


# Blocks of benchmarks, profiles and compared numbers, which few pages have: imported when one is drawn.
def _heatmap_values(block: Any) -> dict[str, Any]:
    from compilescope.report.render.grids import heatmap_values

    return heatmap_values(block)


def _matrix_values(block: Any) -> dict[str, Any]:
    from compilescope.report.render.grids import matrix_values

    return matrix_values(block)


def _measure_values(block: Any) -> dict[str, Any]:
    from compilescope.report.render.measures import measure_values

    return measure_values(block)


def _curves_values(block: Any) -> dict[str, Any]:
    from compilescope.report.render.charts import curves_values

    return curves_values(block)


def _roofline_values(block: Any) -> dict[str, Any]:
    from compilescope.report.render.charts import roofline_values

    return roofline_values(block)


def _trend_values(block: Any) -> dict[str, Any]:
    from compilescope.report.render.charts import trend_values

    return trend_values(block)


def _block(block: Block, prefix: str) -> str:
    if isinstance(block, Excerpt | Listing | SourceFile):
        block = cleaned(block)  # Here already: marks go by columns of what is shown.
    name = type(block).__name__.lower()
    values = _VALUES[name](block) if name in _VALUES else {}
    return draw_template(f"blocks/{name}", block=block, prefix=prefix, **values)


def _drawing(name: str) -> Callable[[dict[str, Any]], str]:
    return _DRAWN[name]


def _diff_lines(block: Diff) -> list[tuple[str, str]]:
    return [(diff_kind(line), line) for line in block.text.splitlines()]


def _listing_lines(block: Listing) -> list[tuple[int, bool, Markup]]:
    rows = []
    tokens = code_tokens("\n".join(block.lines))
    for number, (line, pieces) in enumerate(
        zip(block.lines, tokens, strict=False), block.first_line
    ):
        part = marked_part(block, number, line)
        text = line_html(pieces, *part) if part is not None else line_html(pieces)
        rows.append((number, number == block.marked_line, text))
    return rows


def _excerpt_line(block: Excerpt) -> Markup:
    lead = len(block.text) - len(block.text.lstrip())
    tokens = code_tokens(block.text.strip())[0]
    if block.column is None:
        return line_html(tokens)
    stop = None if block.end_column is None else max(block.end_column - lead, 0)
    return line_html(tokens, max(block.column - lead, 0), stop)


def _spans(parts: Words, prefix: str = "", how: str = "") -> Markup:
    """`unlinked`: where a link cannot stand."""
    if how == "unlinked":
        parts = tuple(Span(part.text, part.style) for part in parts)
    return Markup("".join(_span(part, prefix) for part in parts))


def _targets(branch: Branch) -> list[str]:
    spans = (*branch.words, *branch.note)
    return list(dict.fromkeys(span.target for span in spans if span.target))


def _span(part: Span, prefix: str) -> str:
    if part.style == "code":
        text = f"<code>{clean(part.text.strip('`'))}</code>"
    elif part.style == "plain":
        text = clean(part.text)
    else:
        text = f'<span class="{part.style}">{clean(part.text)}</span>'
    if is_address(part.url):
        return f'<a href="{clean(part.url)}" rel="noopener">{text}</a>'
    return f'<a href="#{prefix}{clean(part.target)}">{text}</a>' if part.target else text
