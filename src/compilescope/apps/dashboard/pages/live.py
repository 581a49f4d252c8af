"""A run while it happens: what it comes to so far, each event as it comes, and a way to stop it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import time
from pathlib import Path

import psutil
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.apps.dashboard.jobs.words import shown_output
from compilescope.apps.dashboard.live.live_entries import KINDS
from compilescope.apps.dashboard.live.tail import LiveTotals
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.apps.dashboard.server.streams import resume_id, stream
from compilescope.base.errors import ToolError
from compilescope.base.processes.table import descendants
from compilescope.record.header import RunHeader, read_header
from compilescope.record.run import is_live

_KILL_AFTER_S = 10.0
"""How long a program may take to end after Ctrl-C until Kill is offered. Chosen;
docs/guides/dashboard.md says it to users."""
_GRACE_S = 3.0
"""How long the launcher may take to record that its program was killed. Chosen: it only writes a
header, and a reader waits for the answer."""


# Stops a run: first as Ctrl-C does, and by force where that did not help.
#
# A number of a process may belong to another one by now. So a signal goes only to a process that is
# at work since before the run began, on this machine, and the user's own.


def _interrupt(folder: Path) -> None:
    """Ctrl-C for the launcher, which hands it on to the program."""
    _signal(_launcher(read_header(folder)), signal.SIGINT)


def _kill(folder: Path) -> None:
    """The program at once. Its launcher lives on to record that, unless it can't."""
    launcher = _launcher(read_header(folder))
    below = [_process(pid) for pid in descendants(launcher.pid)]
    for process in below:
        if process is not None:
            _signal(process, signal.SIGKILL)
    end = time.monotonic() + (_GRACE_S if below else 0.0)
    while time.monotonic() < end:
        if not is_live(read_header(folder)):
            return
        time.sleep(0.05)
    _signal(launcher, signal.SIGKILL)


def _launcher(header: RunHeader) -> psutil.Process:
    pid = header.launcher_pid
    process = _process(pid) if pid is not None and is_live(header) else None
    if process is None:
        raise ToolError("This run has ended.", hint="Load the page again to see its report.")
    try:
        own = process.uids().real == os.getuid()
    except psutil.Error:
        own = False
    if not own or process.pid == os.getpid():
        raise ToolError(f"Process {process.pid}, which records this run, is not yours to stop.")
    return process


def _process(pid: int) -> psutil.Process | None:
    """None: it has ended."""
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    """psutil sees to it that the number was not given to another process meanwhile."""
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)


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
        kill_after=_KILL_AFTER_S,
        offer_kill=asked is not None and asked >= _KILL_AFTER_S,
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
        raise ToolError("A run is stopped by `_interrupt` or by `_kill`.")
    await asyncio.to_thread(_kill if how == "kill" else _interrupt, folder)
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
