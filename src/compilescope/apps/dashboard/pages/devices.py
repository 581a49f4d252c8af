"""Devices: what they support, and what they refused, by model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from compilescope.apps.dashboard.drawings import Named, draw_device, draw_devices
from compilescope.apps.dashboard.runs.rows import NewestRuns, RunRow, newest
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import dashboard_of
from compilescope.base.errors import ToolError

_LONGEST = 200
"""Letters of a device's name. Chosen: a bound for what anyone may send; real names are short."""
# Chosen: each program's graphs are checked while the reader waits.
_MOST_PROGRAMS = 10
_MOST_GRAPHS = 200


async def _list(request: Request) -> Response:
    choice, runs, _ = await _runs(request)
    parts = await dashboard_of(request).drawing.draw(draw_devices, runs)
    return show(request, "devices", "Devices", main=parts.main, choice=choice)


async def _device(request: Request) -> Response:
    name = request.path_params["name"]
    if len(name) > _LONGEST:
        raise ToolError("The name of a device is shorter than this.")
    choice, runs, programs = await _runs(request)
    parts = await dashboard_of(request).drawing.draw(draw_device, runs, programs, name)
    return show(
        request,
        "device",
        name,
        sections=parts.sections,
        main=parts.main,
        name=name,
        choice=choice,
    )


async def _runs(request: Request) -> tuple[NewestRuns, Named, Named]:
    """Those that were checked (of one whose figures are not known yet nobody can say), and those
    whose graphs are checked for the page."""
    rows = await asyncio.to_thread(dashboard_of(request).index.rows)
    choice = newest(rows, lambda row: row.devices is None or bool(row.devices))
    return choice, _named(choice.rows), _named(_programs(rows))


def _programs(rows: Sequence[RunRow]) -> list[RunRow]:
    """The newest run of each program, of those that ran last. A check takes time: not of a run
    with very many graphs."""
    found: dict[str, RunRow] = {}
    for row in rows:
        fits = not row.live and 0 < (row.graphs or 0) <= _MOST_GRAPHS
        if row.kind == "run" and fits:
            found.setdefault(row.program, row)
    return list(found.values())[:_MOST_PROGRAMS]


def _named(rows: Sequence[RunRow]) -> Named:
    return tuple((row.program, row.folder) for row in rows)


PAGE = DashboardPage(
    "devices",
    80,
    (Address("/devices", _list, open=True), Address("/devices/{name}", _device, open=True)),
    "Devices",
)
