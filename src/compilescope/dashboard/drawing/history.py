"""What worker processes draw of many runs: benchmarks over time, sweeps, numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from compilescope.analysis.benchmark_history import benchmark_history
from compilescope.dashboard.addresses import jobs_address, run_address
from compilescope.errors import ToolError
from compilescope.model.run import Run, read_run
from compilescope.report.benchmark_history import by_setup, history_item
from compilescope.report.blocks import Block, Document, Part
from compilescope.report.number_runs import number_items
from compilescope.report.render.html import draw
from compilescope.report.render.page import PageParts, page_parts
from compilescope.report.sweep_list import sweeps_table


class HistoryEntry(NamedTuple):
    """One model, on all its backends or on one of them."""

    model: str
    backend: str
    """Empty: all."""
    drawn: Markup


class DrawnHistory(NamedTuple):
    """Drawn for each choice that a reader has: intervals take their time, and need it once."""

    models: tuple[str, ...]
    backends: tuple[str, ...]
    entries: tuple[HistoryEntry, ...]

    def chosen(self, model: str, backend: str) -> list[Markup]:
        return [
            each.drawn
            for each in self.entries
            if each.backend == backend and model in ("", each.model)
        ]


def draw_benchmarks(folders: tuple[Path, ...]) -> DrawnHistory:
    series = benchmark_history(list(_read(folders)))
    backends = tuple(sorted({each.backend for each in series}))
    entries = [
        HistoryEntry(setup.model, backend, draw([history_item(setup, left, run_address)]))
        for setup, members in by_setup(series).items()
        for backend in ("", *backends)
        if (left := [each for each in members if backend in ("", each.backend)])
    ]
    models = tuple(sorted({each.setup.model for each in series}))
    return DrawnHistory(models, backends, tuple(entries))


def draw_sweeps(folders: tuple[Path, ...]) -> PageParts:
    table = sweeps_table(list(_read(folders)), run_address, jobs_address)
    return _page("sweeps", "Sweeps", [table])


def draw_numbers(folders: tuple[Path, ...]) -> PageParts:
    return _page("numbers", "Comparisons", number_items(list(_read(folders)), run_address))


def _read(folders: tuple[Path, ...]) -> Iterator[Run]:
    """Those that can be read: one that is deleted or damaged is no reason to hide the others."""
    for folder in folders:
        try:
            yield read_run(folder)
        except (ToolError, OSError):
            continue


def _page(name: str, title: str, blocks: list[Block]) -> PageParts:
    return page_parts([Document(title, "", (Part(name, "", tuple(blocks)),))], headed=False)
