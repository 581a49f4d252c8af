"""Two runs, chosen and shown side by side."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from compilescope.apps.dashboard.addresses import compare_address, run_address
from compilescope.apps.dashboard.drawings import draw_comparison, find_chosen, newest_pairs
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of
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
        "choices": [
            (row.run, " · ".join(filter(None, (row.program, moment(row.started), row.status))))
            for row in rows[:_MOST_CHOICES]
        ],
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
        return show(request, "compare", "Compare", sides=(), parts=None, swapped="", **page)
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
        **{**page, "a": before.name, "b": after.name},
    )


PAGE = DashboardPage("compare", 40, (Address("/compare", _show, open=True),), "Compare")
