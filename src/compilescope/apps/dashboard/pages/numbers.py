"""KernelDiff: runs that compared the numbers of two backends."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from compilescope.apps.dashboard.drawings import draw_numbers
from compilescope.apps.dashboard.runs.rows import newest
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of


async def _show(request: Request) -> Response:
    dashboard = dashboard_of(request)
    rows = await asyncio.to_thread(dashboard.index.rows)
    choice = newest(rows, lambda row: row.kind == "numbers")
    parts = None
    if choice.rows:
        parts = await dashboard.drawing.draw(draw_numbers, tuple(r.folder for r in choice.rows))
    return show(request, "numbers", "Numbers", parts=parts, choice=choice)


PAGE = DashboardPage("numbers", 70, (Address("/numbers", _show, open=True),), "Numbers")
