"""One run: its report, the commands that make sense for it as buttons, and files of it to keep."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from compilescope.apps.dashboard.addresses import (
    MissingPage,
    compare_address,
    fix_address,
    run_address,
    start_address,
)
from compilescope.apps.dashboard.drawings import draw_run, report_file
from compilescope.apps.dashboard.pages.live import is_shown_live, show_live
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import Dashboard, dashboard_of
from compilescope.record.header import read_header
from compilescope.record.provenance import is_recorded_here
from compilescope.report.sharing.archive import write_archive


class Action(NamedTuple):
    label: str
    address: str
    needs_token: bool = False
    file: bool = False
    """It is a file to keep, and not a page."""


_BUILD = re.compile(r"[^-].*\.py:\w+")
_FORMS = {"benchmark": "bench", "sweep": "sweep", "numbers": "diff"}
"""Kind of run -> the form that starts another."""


def actions_of(row: RunRow, cwd: str, rows: Sequence[RunRow], *, ours: bool) -> list[Action]:
    """`ours`: it was recorded here, so what it says may be started again."""
    found = _starting(row, cwd) if ours else _reading(row)
    earlier = previous_run(row, rows)
    if earlier is not None:
        found.append(Action("Compare with previous", compare_address(earlier.run, row.run)))
    at = run_address(row.run)
    return [
        *found,
        Action("HTML", f"{at}/report.html", file=True),
        Action("JSON", f"{at}/report.json", file=True),
        Action("Archive", f"{at}/archive.zip", file=True),
    ]


def previous_run(row: RunRow, rows: Sequence[RunRow]) -> RunRow | None:
    """The one before it, of the same program."""
    alike = [each for each in rows if (each.kind, each.program) == (row.kind, row.program)]
    earlier = [each for each in alike if each.started < row.started and each.run != row.run]
    return max(earlier, key=lambda each: each.started, default=None)


def _starting(row: RunRow, cwd: str) -> list[Action]:
    """Each is a form, filled in; what a search for fixes found can be applied."""
    if row.kind == "fix":
        return [
            Action("See and apply the fix", fix_address(row.run), needs_token=True),
            Action("Search again", start_address("fix", run=row.run), needs_token=True),
        ]
    if row.kind in _FORMS:
        build = build_of(row.command, cwd) if row.kind == "numbers" else ""
        return [Action("Start another", start_address(_FORMS[row.kind], build=build), True)]
    if row.kind != "run":
        return []
    script = script_of(row.command, cwd)
    program = {"script": script, "arguments": shlex.join(row.command[1:])} if script else {}
    forms = [
        ("Start again", "run", program),
        # These know the program of a run, also where it is a module or needs torchrun.
        ("Find fixes", "fix", {"run": row.run}),
        ("Minify", "minify", program),
        ("Check a device", "preflight", {"run": row.run}),
    ]
    return [
        Action(label, start_address(form, **fields), needs_token=True)
        for label, form, fields in forms
        if fields
    ]


def _reading(row: RunRow) -> list[Action]:
    """Of a run of somebody else's: what only reads it."""
    if row.kind == "fix":
        return [Action("See the fix", fix_address(row.run), needs_token=True)]
    if row.kind in _FORMS:
        return [Action("Start another", start_address(_FORMS[row.kind]), True)]
    if row.kind != "run":
        return []
    return [Action("Check a device", start_address("preflight", run=row.run), needs_token=True)]


def script_of(command: Sequence[str], cwd: str) -> str:
    """The file that was run, absolute; empty where it was a module or a line of code."""
    if not command or not command[0].endswith(".py") or not cwd:
        return ""
    return os.path.normpath(os.path.join(cwd, command[0]))


def build_of(command: Sequence[str], cwd: str) -> str:
    """Of `compilescope diff`: `/models/mlp.py:build`; empty where no word of it is one."""
    found = next((word for word in command[1:] if _BUILD.fullmatch(word)), "")
    return os.path.normpath(os.path.join(cwd, found)) if found and cwd else ""


_PATIENCE_S = 600
"""For a file: a browser would save the page that says to wait. Chosen: it ends what hangs."""
_MEDIA = {"html": "text/html; charset=utf-8", "json": "application/json"}


async def _show(request: Request) -> Response:
    run = request.path_params["run"]
    try:
        folder = dashboard_of(request).folder_of(run)
    except MissingPage:
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
