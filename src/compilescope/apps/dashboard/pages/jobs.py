"""What was started here: all jobs, and one with its output."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from compilescope.apps.dashboard.addresses import MissingPage, run_address
from compilescope.apps.dashboard.fields.form import all_forms
from compilescope.apps.dashboard.jobs.job import (
    CommandJob,
    output_end,
    plain_text,
    read_output,
    whole_characters,
    whole_output,
)
from compilescope.apps.dashboard.jobs.words import job_state, jobs_table, present_runs, shown_output
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import Dashboard, dashboard_of
from compilescope.apps.dashboard.server.streams import Update, resume_offset, stream
from compilescope.base.errors import ToolError

_PACE_S = 0.25
"""Between two looks for new output. Chosen: it seems to be at once."""
_CHUNK = 1 << 16
"""Bytes of output that are sent at a time. Chosen: more than a screen shows, and no long answer."""
_TOO_FAR = 1 << 19
"""A viewer who is this far behind is shown the end instead. Chosen: eight pieces."""
_MOST_FILE = 1 << 18
"""Bytes of a file that a page shows. Chosen: more than people read there; the page says that there
is more."""


async def _list(request: Request) -> Response:
    dashboard = dashboard_of(request)
    jobs = await asyncio.to_thread(dashboard.jobs.all)
    limits = dashboard.options.limits
    return show(
        request,
        "jobs",
        "Jobs",
        table=jobs_table(jobs, dashboard.options.home) if jobs else None,
        active=sum(not job.is_over for job in jobs),
        at_once=limits.jobs,
    )


async def _show(request: Request) -> Response:
    dashboard = dashboard_of(request)
    job = await _found(request)
    live = request.query_params.get("live") == "1" and not job.is_over
    if live and (runs := await asyncio.to_thread(present_runs, job, dashboard.options.home)):
        return RedirectResponse(run_address(runs[0]), 303)
    output = await asyncio.to_thread(shown_output, job.folder)
    form = next((form for form in all_forms() if form.id == job.request.form), None)
    known = form is not None and dashboard.jobs.is_ours(job)
    again = f"/start/{form.id}?{_query(job)}" if form is not None and known else ""
    return show(
        request,
        "job",
        job.request.title or job.line,
        job=job,
        state=_state(dashboard, job),
        line=f"cd {shlex.quote(job.cwd)} && {job.line}",
        output=output,
        live=live,
        files=list(_files(dashboard, job)),
        again=again,
    )


async def _events(request: Request) -> Response:
    job = await _found(request)
    return stream(request, _updates(dashboard_of(request), job.id, resume_offset(request)))


async def _updates(dashboard: Dashboard, wanted: str, at: int) -> AsyncIterator[Update]:
    """What it prints from `at` on, and its state whenever that changes. An id is a place in the
    output: whoever comes back gets the state anew and the output from there."""
    last: dict[str, Any] = {}
    while True:
        try:
            job = await asyncio.to_thread(dashboard.jobs.find, wanted)
        except ToolError as error:
            yield Update(str(at), "gone", {"words": error.message})
            return
        state = _state(dashboard, job)
        # The time that passes is no news.
        news = {**state, "seconds": None}
        if news != last:
            last = news
            yield Update(str(at), "state", {**state, "over": False})
        while (data := await asyncio.to_thread(_next_output, job, at))["text"] is not None:
            at = data["end"]
            yield Update(str(at), "output", data)
        if job.is_over:
            yield Update(str(at), "state", {**state, "over": True})
            return
        await asyncio.sleep(_PACE_S)


def _next_output(job: CommandJob, at: int) -> dict[str, Any]:
    """The next piece; its text is None where there is nothing new."""
    end = output_end(job.folder)
    start = end - _CHUNK if end - at > _TOO_FAR else at
    chunk = read_output(job.folder, start, _CHUNK)
    usable = whole_characters(chunk.data)
    if job.is_over or len(chunk.data) == _CHUNK:
        usable = usable or len(chunk.data)
    text = plain_text(chunk.data[:usable]) if usable else None
    return {"text": text, "end": chunk.start + usable, "skipped": chunk.start - at}


async def _stop(request: Request) -> Response:
    job = await _found(request)
    async with request.form(max_files=0, max_fields=2) as sent:
        kill = sent.get("kill") == "1"
    await asyncio.to_thread(dashboard_of(request).jobs.stop, job.id, kill=kill)
    return RedirectResponse(f"/jobs/{job.id}", 303)


async def _output(request: Request) -> Response:
    """All that is kept, as plain text."""
    job = await _found(request)
    headers = {"content-disposition": f'inline; filename="{job.id}.txt"'}
    # A generator of plain functions runs in a thread.
    return StreamingResponse(
        whole_output(job.folder), media_type="text/plain; charset=utf-8", headers=headers
    )


async def _file(request: Request) -> Response:
    """A file that the job was asked to write."""
    dashboard = dashboard_of(request)
    job = await _found(request)
    given = request.path_params["number"]
    number = int(given) if given.isdecimal() and len(given) < 9 else -1
    files = dict(_files(dashboard, job))
    if number not in files:
        raise MissingPage("There is no such file.", hint="It may have been moved or deleted.")

    def read() -> bytes:
        with files[number].open("rb") as file:
            return file.read(_MOST_FILE + 1)

    try:
        data = await asyncio.to_thread(read)
    except OSError as error:
        raise ToolError(f"{files[number]} can't be read: {error.strerror}.") from None
    return show(
        request,
        "job_file",
        files[number].name,
        job=job,
        path=str(files[number]),
        text=data[:_MOST_FILE].decode("utf-8", "replace"),
        cut=len(data) > _MOST_FILE,
    )


def _files(dashboard: Dashboard, job: CommandJob) -> Iterator[tuple[int, Path]]:
    """Those that are there, inside of what may be shown."""
    for number, name in enumerate(job.request.writes):
        try:
            found = dashboard.folders.check(name)
        except ToolError:
            continue
        if found.is_file():
            yield number, found


def _state(dashboard: Dashboard, job: CommandJob) -> dict[str, Any]:
    exits = next((form.exits for form in all_forms() if form.id == job.request.form), {})
    return job_state(job, dashboard.options.home, exits)


async def _found(request: Request) -> CommandJob:
    jobs = dashboard_of(request).jobs
    return await asyncio.to_thread(jobs.find, request.path_params["job"])


def _query(job: CommandJob) -> str:
    pairs = [(name, each) for name, values in job.request.values.items() for each in values if each]
    return urlencode(pairs)


PAGE = DashboardPage(
    "jobs",
    30,
    (
        Address("/jobs", _list),
        Address("/jobs/{job}", _show),
        Address("/jobs/{job}/events", _events),
        Address("/jobs/{job}/output", _output),
        Address("/jobs/{job}/files/{number}", _file),
        Address("/jobs/{job}/stop", _stop, "POST"),
    ),
    "Jobs",
)
