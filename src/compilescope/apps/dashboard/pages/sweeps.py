"""The pages of sweeps: a list of them, the jobs of one sweep, and one job."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.apps.dashboard.addresses import jobs_address, run_address
from compilescope.apps.dashboard.drawings import draw_job, draw_jobs, draw_sweeps
from compilescope.apps.dashboard.runs.rows import newest
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.base.errors import ToolError
from compilescope.report.sweeps import job_url

_LONGEST = 2000
"""Letters of a job's name. Chosen: a bound for what anyone may send."""


async def _list(request: Request) -> Response:
    dashboard = dashboard_of(request)
    rows = await asyncio.to_thread(dashboard.index.rows)
    choice = newest(rows, lambda row: row.kind == "sweep")
    parts = None
    if choice.rows:
        parts = await dashboard.drawing.draw(draw_sweeps, tuple(r.folder for r in choice.rows))
    return show(request, "sweeps", "Sweeps", parts=parts, choice=choice)


async def _jobs(request: Request) -> Response:
    dashboard, run = dashboard_of(request), request.path_params["run"]
    cause = _short(request.query_params.get("cause", ""))
    parts = await dashboard.drawing.draw(draw_jobs, dashboard.folder_of(run), cause)
    title = f"{cause} in {run}" if cause else f"Jobs of {run}"
    return show(
        request,
        "sweep_jobs",
        title,
        main=parts.main,
        heading=f"Jobs with {cause}" if cause else "Jobs",
        sweep=run,
        sweep_at=run_address(run),
        jobs_at=jobs_address(run) if cause else "",
    )


async def _job(request: Request) -> Response:
    dashboard, run = dashboard_of(request), request.path_params["run"]
    name = _short(request.path_params["name"])
    page = await dashboard.drawing.draw(draw_job, dashboard.folder_of(run), name)
    cause = _short(request.query_params.get("cause", ""))
    if cause:
        # A place in a page has no address that a server could look up: the browser goes there.
        anchor = page.anchors.get(cause, "")
        at = job_url(jobs_address(run), name)
        return RedirectResponse(f"{at}#{anchor}" if anchor else at, 303)
    return show(
        request,
        "sweep_job",
        f"{name} in {run}",
        sections=page.parts.sections,
        packed=page.parts.packed,
        main=page.parts.main,
        name=name,
        sweep=run,
        sweep_at=run_address(run),
        jobs_at=jobs_address(run),
    )


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise ToolError("This name is too long.")
    return text


PAGE = DashboardPage(
    "sweeps",
    60,
    (
        Address("/sweeps", _list, open=True),
        Address("/runs/{run}/jobs", _jobs, open=True),
        # Its run is unpacked from the sweep's store, which may be anywhere.
        Address("/runs/{run}/jobs/{name:path}", _job),
    ),
    "Sweeps",
)
