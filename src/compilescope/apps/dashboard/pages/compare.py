"""Two runs side by side, or several over each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from compilescope.apps.dashboard.addresses import (
    compare_address,
    overlay_address,
    run_address,
)
from compilescope.apps.dashboard.drawings import (
    ChosenRun,
    draw_comparison,
    draw_overlay,
    find_chosen,
    newest_pairs,
)
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.base.errors import ToolError
from compilescope.report.overlay import MOST_RUNS
from compilescope.report.render.spans import moment

_MOST_CHOICES = 500
"""Runs to choose from, the newest. Chosen: any other can be named in the address."""
_MOST_PICKS = 40
"""Of them in the list to pick from. Chosen: two screens."""


async def _show(request: Request) -> Response:
    rows = await asyncio.to_thread(dashboard_of(request).index.rows)
    pairs = newest_pairs(rows)
    names = [request.query_params.get(name, "").strip() for name in ("a", "b")]
    page: dict[str, Any] = {
        "choices": [(row.run, _words(row)) for row in rows[:_MOST_CHOICES]],
        "pairs": pairs,
        "a": names[0],
        "b": names[1],
    }
    if not any(names) and pairs:
        page |= {"a": pairs[0].before, "b": pairs[0].after}
    # Links that keep the other side, and need no script.
    page["picks"] = [
        (run, words, compare_address(run, page["b"]), compare_address(page["a"], run))
        for run, words in page["choices"][:_MOST_PICKS]
    ]
    if not all(names):
        return show(
            request, "compare", "Compare", sides=(), parts=None, swapped="", over_time="", **page
        )
    named = dashboard_of(request).named_by_start
    before, after = await asyncio.to_thread(
        lambda: [find_chosen(rows, name, named) for name in names]
    )
    parts = await dashboard_of(request).drawing.draw(
        draw_comparison, before.row.folder, before.rank, after.row.folder, after.rank
    )
    return show(
        request,
        "compare",
        f"{before.name} and {after.name}",
        # A list of one section leads nowhere.
        sections=parts.sections if parts.sections.count("<li>") > 1 else "",
        packed=parts.packed,
        parts=parts,
        sides=[
            (
                label,
                side.name,
                run_address(side.row.run),
                side.row.program,
                moment(side.row.started),
            )
            for label, side in (("Before", before), ("After", after))
        ],
        swapped=compare_address(after.name, before.name),
        over_time=overlay_address((before.name, after.name)),
        **{**page, "a": before.name, "b": after.name},
    )


async def _overlay(request: Request) -> Response:
    """Several, each from its own start."""
    rows = await asyncio.to_thread(dashboard_of(request).index.rows)
    asked = [name.strip() for name in request.query_params.getlist("run") if name.strip()]
    names = list(dict.fromkeys(asked))
    if not 2 <= len(names) <= MOST_RUNS:
        raise ToolError(
            f"Choose two to {MOST_RUNS} runs.", hint="The list of runs has a box for each."
        )
    named = dashboard_of(request).named_by_start
    chosen = await asyncio.to_thread(lambda: [find_chosen(rows, name, named) for name in names])
    sides = tuple((each.row.folder, each.rank) for each in chosen)
    parts = await dashboard_of(request).drawing.draw(draw_overlay, sides)
    shown = [each.name for each in chosen]
    return show(
        request,
        "overlay",
        f"{len(chosen)} runs",
        sections=parts.sections,
        parts=parts,
        runs=[
            (
                each.name,
                run_address(each.row.run),
                overlay_address(name for name in shown if name != each.name),
            )
            for each in chosen
        ],
        fewer=len(chosen) > 2,
        newer=_newer(rows, chosen) if len(chosen) < MOST_RUNS else [],
        differences=compare_address(*shown) if len(chosen) == 2 else "",
    )


def _newer(rows: Sequence[RunRow], chosen: Sequence[ChosenRun]) -> list[tuple[str, str, str]]:
    """The newest runs that are not among them, those of the same programs first."""
    there = {each.row.run for each in chosen}
    programs = {each.row.program for each in chosen}
    others = [row for row in rows if row.run not in there]
    others.sort(key=lambda row: row.program not in programs)
    names = [each.name for each in chosen]
    return [
        (row.run, _words(row), overlay_address([*names, row.run])) for row in others[:_MOST_PICKS]
    ]


def _words(row: RunRow) -> str:
    return " · ".join(filter(None, (row.program, moment(row.started), row.status)))


PAGE = DashboardPage(
    "compare",
    40,
    (Address("/compare", _show, open=True), Address("/compare/runs", _overlay, open=True)),
    "Compare",
)
