"""Plots as SVG inside a page: no script, no library, colours from the stylesheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from compilescope.texts import visible

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
