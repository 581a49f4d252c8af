"""A run while it happens: what it comes to so far, each event as it comes, and a way to stop it."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.dashboard.jobs.words import shown_output
from compilescope.dashboard.live.moments import KINDS
from compilescope.dashboard.live.stop import KILL_AFTER_S, interrupt, kill
from compilescope.dashboard.live.totals import LiveTotals
from compilescope.dashboard.server.page import Address, DashboardPage
from compilescope.dashboard.server.shell import show
from compilescope.dashboard.server.state import dashboard_of
from compilescope.dashboard.server.streams import resume_id, stream
from compilescope.errors import ToolError
from compilescope.model.header import read_header
from compilescope.model.run import is_live

WHOLE = "report"
"""The query parameter that asks for the report of a run, however far it has come."""


async def is_shown_live(request: Request, folder: Path) -> bool:
    """Is this run still being written, and did nobody ask for its report so far?"""
    if WHOLE in request.query_params:
        return False
    return await asyncio.to_thread(lambda: is_live(read_header(folder)))


async def show_live(request: Request, folder: Path) -> Response:
    """The page of a run that goes on. Its script hears the events."""
    dashboard = dashboard_of(request)
    header = await asyncio.to_thread(read_header, folder)
    job = await asyncio.to_thread(dashboard.jobs.job_of, folder.name)
    asked = dashboard.live.stop_asked(folder.name)
    return show(
        request,
        "live",
        shlex.join(header.command) or folder.name,
        run=folder.name,
        header=header,
        command=shlex.join(header.command),
        kinds=KINDS,
        figures=[LiveTotals().figures()],
        job=job,
        output=None if job is None else await asyncio.to_thread(shown_output, job.folder),
        asked=asked,
        kill_after=KILL_AFTER_S,
        offer_kill=asked is not None and asked >= KILL_AFTER_S,
    )


async def _events(request: Request) -> Response:
    dashboard = dashboard_of(request)
    folder = dashboard.folder_of(request.path_params["run"])
    return stream(request, dashboard.live.updates(folder, resume_id(request)))


async def _stop(request: Request) -> Response:
    dashboard = dashboard_of(request)
    folder = dashboard.folder_of(request.path_params["run"])
    form = await request.form(max_files=0, max_fields=5)
    how = form.get("how", "interrupt")
    if how not in ("interrupt", "kill") or set(form) - {"how"}:
        raise ToolError("A run is stopped by `interrupt` or by `kill`.")
    await asyncio.to_thread(kill if how == "kill" else interrupt, folder)
    dashboard.live.note_stop(folder.name)
    return RedirectResponse(f"/runs/{folder.name}", 303)


PAGE = DashboardPage(
    "live",
    12,
    (
        Address("/runs/{run}/events", _events, open=True),
        Address("/runs/{run}/stop", _stop, "POST"),
    ),
)
