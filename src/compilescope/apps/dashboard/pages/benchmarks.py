"""The page of benchmarks: how the figures of each model and backend went from run to run."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from compilescope.apps.dashboard.drawings import draw_benchmarks
from compilescope.apps.dashboard.runs.rows import newest
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.base.errors import ToolError


async def _show(request: Request) -> Response:
    dashboard = dashboard_of(request)
    rows = await asyncio.to_thread(dashboard.index.rows)
    choice = newest(rows, lambda row: row.kind == "benchmark")
    if not choice.rows:
        return show(request, "benchmarks", "Benchmarks", page=None, choice=choice)
    model, backend = (request.query_params.get(name, "") for name in ("model", "backend"))
    folders = tuple(row.folder for row in choice.rows)
    page = await dashboard.drawing.draw(draw_benchmarks, folders)
    for value, known, what in ((model, page.models, "model"), (backend, page.backends, "backend")):
        if value and value not in known:
            raise ToolError(f"No benchmark here has the {what} {value[:80]!r}.")
    return show(
        request,
        "benchmarks",
        "Benchmarks",
        page=page,
        entries=page.chosen(model, backend),
        model=model,
        backend=backend,
        choice=choice,
    )


PAGE = DashboardPage("benchmarks", 50, (Address("/benchmarks", _show, open=True),), "Benchmarks")
