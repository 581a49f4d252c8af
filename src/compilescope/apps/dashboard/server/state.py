"""The services that pages share between requests: runs, jobs, live runs, drawing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.requests import Request

from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.drawing_workers import DrawingWorkers
from compilescope.apps.dashboard.graph_breaks import GraphBreaks
from compilescope.apps.dashboard.jobs.service import Jobs
from compilescope.apps.dashboard.live.live_runs import LiveRuns
from compilescope.apps.dashboard.runs.fix_runs import FixRuns
from compilescope.apps.dashboard.runs.index import RunIndex
from compilescope.apps.dashboard.server.options import Options
from compilescope.apps.dashboard.server.streams import Streams
from compilescope.base.folders import Folders
from compilescope.record.header import FILE_NAME
from compilescope.record.home import list_runs


class Dashboard:
    """The services that pages use. Each has a file or a room of its own beside this one."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.graph_breaks = GraphBreaks(options.notes)
        self.fix_runs = FixRuns()
        # Connections that stall are dropped before: this is for what runs on another server.
        self.streams = Streams(options.limits.viewers, 2 * options.limits.stalled_s)
        self.drawing = DrawingWorkers(patience=options.limits.drawing_seconds)
        self.folders = Folders(options.folders)
        self.jobs = Jobs(options.home, options.limits, key=options.token)
        self.live = LiveRuns()
        self.index = RunIndex(options.home)
        self.packing = asyncio.Semaphore(2)
        """Archives at once: each takes a copy of its run's size on disk."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """For as long as the server answers."""
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.drawing.close)
            await stack.enter_async_context(self.jobs.running())
            stack.push_async_callback(self.live.close)
            stack.callback(self.index.close)
            yield

    def folder_of(self, run: str) -> Path:
        """The folder of a run by its whole id: one right in the folder of runs, nothing else."""
        folder = self.options.home / run
        plain = run not in ("", ".", "..") and Path(run).name == run and "\0" not in run
        try:
            known = plain and not folder.is_symlink() and (folder / FILE_NAME).is_file()
        except (OSError, ValueError):  # Too long, or no name at all on this system.
            known = False
        if not known:
            raise MissingPage(f"There is no run {run[:80]!r}.", hint="It may have been deleted.")
        return folder

    def named_by_start(self, start: str) -> str | None:
        """The whole id of the one run whose id begins like this; None where there is none."""
        runs, _ = list_runs(self.options.home)
        found = [path.name for path, header in runs if start and header.run.startswith(start)]
        found = [name for name in found if not (self.options.home / name).is_symlink()]
        if len(found) > 1:
            raise MissingPage(
                f"{start[:80]!r} matches {len(found)} runs.", hint="Give more of the ID."
            )
        return found[0] if found else None


def dashboard_of(request: Request) -> Dashboard:
    found = request.app.state.dashboard
    assert isinstance(found, Dashboard)
    return found
