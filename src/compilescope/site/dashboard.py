"""The figures and plots of the dashboard."""

from __future__ import annotations

from typing import Any

from compilescope.site.content import Content, Page
from compilescope.site.plots import PlotBar, bars, steps


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
