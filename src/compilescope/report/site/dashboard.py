"""The site's dashboard: its figures, and plots as SVG inside the page.

No script, no library; colours come from the stylesheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markupsafe import Markup

from compilescope.base.texts import visible
from compilescope.report.site.content import Content, Page

# Chosen: pixels of a plot as wide as the text of the page, with room for the longest labels.
_WIDTH = 860
_LABEL = 390
_ROW = 24
_CHART = 240


@dataclass(frozen=True)
class PlotBar:
    """A row: its label, where it leads, and its parts, each with the class that colours it."""

    label: str
    link: str
    parts: tuple[tuple[str, int], ...]
    note: str = ""

    @property
    def total(self) -> int:
        return sum(number for _, number in self.parts)


def bars(rows: Sequence[PlotBar], name: str) -> Markup:
    """Bars from left to right, one a row."""
    longest = max([row.total for row in rows] + [1])
    room = _WIDTH - _LABEL - 60
    drawn = []
    for number, row in enumerate(rows):
        y = number * _ROW
        x = float(_LABEL)
        parts = ""
        for kind, amount in row.parts:
            width = room * amount / longest
            if amount:
                parts += _rect(kind, x, y + 4, width, _ROW - 8)
            x += width
        label = _text(_LABEL - 10, y + 16, row.label, "end")
        figure = _text(x + 6, y + 16, row.note or str(row.total), "start", "figure")
        drawn.append(f'<a href="{escape(row.link)}">{label}{parts}{figure}</a>')
    return _svg("".join(drawn), len(rows) * _ROW + 4, name)


def steps(columns: Sequence[tuple[str, str, int, int]], name: str) -> Markup:
    """Columns from left to right: label, link, what was there before, and what came."""
    highest = max([before + came for _, _, before, came in columns] + [1])
    width = (_WIDTH - 20) / max(len(columns), 1)
    base = _CHART - 24
    drawn = []
    for number, (label, link, before, came) in enumerate(columns):
        x = 10 + number * width
        old, new = (base - 26) * before / highest, (base - 26) * came / highest
        drawn.append(
            f'<a href="{escape(link)}">'
            + _rect("old", x + width * 0.14, base - old, width * 0.72, old)
            + _rect("new", x + width * 0.14, base - old - new, width * 0.72, new)
            + _text(x + width / 2, base - old - new - 6, str(before + came), "middle", "figure")
            + _text(x + width / 2, base + 17, label, "middle")
            + "</a>"
        )
    axis = f'<line class="axis" x1="4" y1="{base}" x2="{_WIDTH - 4}" y2="{base}"/>'
    return _svg(axis + "".join(drawn), _CHART, name)


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
        f'height="{max(height, 0):.1f}" rx="2"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text{style} {place}>{escape(visible(text))}</text>"


def _svg(inside: str, height: int, name: str) -> Markup:
    return Markup(
        f'<figure aria-label="{escape(name)}"><svg class="plot" viewBox="0 0 {_WIDTH} {height}">'
        f"{inside}</svg></figure>"
    )


def dashboard_values(content: Content) -> dict[str, Any]:
    return {
        "tiles": _tiles(content),
        "category_plot": _by_category(content),
        "version_plot": _by_version(content),
        "missing_plot": _missing(content),
        "missing": [page for page in content.pages if page.missing],
        "unraised": [page for page in content.pages if page.raised is False],
    }


def _tiles(content: Content) -> list[tuple[str, int, str, str]]:
    """Label, number, what it means, and the search that lists them."""
    counts = content.counts
    home = "index.html#has="
    tiles = [
        ("graph breaks", counts["total"], f"{counts['wordings']} wordings", "index.html"),
        ("with an example", counts["examples"], "a tested program", f"{home}example"),
        ("with a fixed version", counts["fixed"], "same result, one graph", f"{home}fixed"),
        ("out of reach", counts["unreachable"], "a torch bug, a device, another version", ""),
        ("with a note", counts["notes"], "additional information", f"{home}note"),
        ("missing text", counts["missing"], "no explanation or no hints", f"{home}missing"),
        ("several wordings", counts["several"], "all are shown", f"{home}several"),
    ]
    if any(page.raised is not None for page in content.pages):
        note = "in the table, not in the source"
        tiles.append(("no longer raised", counts["not_raised"], note, f"{home}unraised"))
    return tiles


def _by_category(content: Content) -> Any:
    rows = []
    for category in content.taxonomy:
        pages = content.of_category(category.id)
        rows.append(PlotBar(category.title, f"category/{category.id}.html", _parts(pages)))
    if content.uncategorised:
        rows.append(PlotBar("No category yet", "categories.html", _parts(content.uncategorised)))
    rows.sort(key=lambda row: (-row.total, row.label))
    return bars(rows, "Graph breaks by category, with and without an example")


def _parts(pages: tuple[Page, ...]) -> tuple[tuple[str, int], ...]:
    fixed = sum(page.example is not None and page.example.has_fixed for page in pages)
    examples = sum(page.example is not None for page in pages)
    out = sum(page.example is None and page.unreachable is not None for page in pages)
    rest = len(pages) - examples - out
    return (("fixed", fixed), ("example", examples - fixed), ("unreachable", out), ("rest", rest))


def _by_version(content: Content) -> Any:
    columns = []
    for step in content.history.steps:
        came = len(step.came)
        total = len(content.history.tables[step.torch])
        columns.append((step.torch, f"version/{step.torch}.html", total - came, came))
    return steps(columns, "Graph breaks by torch version")


def _missing(content: Content) -> Any:
    counts = content.counts
    rows = [
        PlotBar(label, "index.html#has=missing", (("bad", counts[name]),))
        for label, name in (("no explanation", "no_explanation"), ("no hints", "no_hints"))
    ]
    return bars(rows, "Graph breaks without an explanation or without hints")
