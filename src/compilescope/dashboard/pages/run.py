"""One run: its report, what can be done with it, and files of it to keep."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from compilescope.dashboard.addresses import Missing
from compilescope.dashboard.drawing.run import draw_run, report_file
from compilescope.dashboard.pages.live import is_shown_live, show_live
from compilescope.dashboard.runs.actions import actions_of
from compilescope.dashboard.server.page import Address, DashboardPage
from compilescope.dashboard.server.shell import show
from compilescope.dashboard.server.state import Dashboard, dashboard_of
from compilescope.model.header import read_header
from compilescope.model.provenance import is_recorded_here
from compilescope.sharing.archive import write_archive

_PATIENCE_S = 600
"""For a file: a browser would save the page that says to wait. Chosen: it ends what hangs."""
_MEDIA = {"html": "text/html; charset=utf-8", "json": "application/json"}


async def _show(request: Request) -> Response:
    run = request.path_params["run"]
    try:
        folder = dashboard_of(request).folder_of(run)
    except Missing:
        whole = await asyncio.to_thread(dashboard_of(request).named_by_start, run)
        if whole is None:
            raise
        return RedirectResponse(f"/runs/{quote(whole)}")
    if await is_shown_live(request, folder):
        return await show_live(request, folder)
    parts = await dashboard_of(request).drawing.draw(draw_run, folder)
    return show(
        request,
        "run",
        parts.title,
        sections=parts.sections,
        packed=parts.packed,
        main=parts.main,
        run=run,
        **await asyncio.to_thread(_around, dashboard_of(request), folder),
    )


def _around(dashboard: Dashboard, folder: Path) -> dict[str, Any]:
    """What the page says beside the report; it changes while the run does not."""
    row = dashboard.index.row(folder.name)
    if row is None:
        return {"actions": [], "tags": (), "note": ""}
    header = read_header(folder)
    ours = is_recorded_here(folder, header)
    actions = actions_of(row, header.cwd, dashboard.index.rows(), ours=ours)
    return {"actions": actions, "tags": row.tags, "note": row.note}


async def _report(request: Request) -> Response:
    dashboard, run = dashboard_of(request), request.path_params["run"]
    form = request.url.path.rpartition(".")[2]
    folder = dashboard.folder_of(run)
    data = await dashboard.drawing.draw(report_file, folder, form, patience=_PATIENCE_S)
    return Response(data, media_type=_MEDIA[form], headers=_to_keep(f"{run}.{form}"))


async def _archive(request: Request) -> Response:
    run = request.path_params["run"]
    folder = dashboard_of(request).folder_of(run)
    scratch = tempfile.TemporaryDirectory(prefix="compilescope-archive-")
    target = Path(scratch.name) / "archive.zip"
    try:
        async with dashboard_of(request).packing:
            await asyncio.to_thread(write_archive, folder, target)
    except BaseException:
        scratch.cleanup()
        raise
    headers = _to_keep(f"{run}.zip")
    end = BackgroundTask(scratch.cleanup)
    return FileResponse(target, media_type="application/zip", headers=headers, background=end)


def _to_keep(name: str) -> dict[str, str]:
    """A browser saves it and does not show it: a report has a script of its own, which the
    dashboard's policy forbids."""
    quoted = quote(name, safe="", errors="replace")
    return {"content-disposition": f"attachment; filename*=utf-8''{quoted}"}


PAGE = DashboardPage(
    "run",
    11,
    (
        Address("/runs/{run}", _show, open=True),
        Address("/runs/{run}/report.html", _report, open=True),
        Address("/runs/{run}/report.json", _report, open=True),
        Address("/runs/{run}/archive.zip", _archive, open=True),
    ),
)
