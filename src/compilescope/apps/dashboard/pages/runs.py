"""The runs on disk: search, sort, filter, how each program went over time; their tags and notes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.apps.dashboard.addresses import compare_address, overlay_address, run_address
from compilescope.apps.dashboard.runs import run_list
from compilescope.apps.dashboard.runs.run_list import RunQuery
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import Dashboard, dashboard_of
from compilescope.base.errors import ToolError
from compilescope.base.texts import plain_json
from compilescope.record.labels import LONGEST_NOTE, make_labels, split_tags, write_labels
from compilescope.report.overlay import MOST_RUNS

_PICK = "pick"
_SINCE = "since"
_FIELDS = ("tags", "note", "back")


async def _list(request: Request) -> Response:
    dashboard = dashboard_of(request)
    given = request.query_params.multi_items()
    picked = [value for name, value in given if name == _PICK]
    query = run_list.parse_query(pair for pair in given if pair[0] != _PICK)
    if _PICK in request.query_params:
        return RedirectResponse(_comparison(dashboard, picked), 303)
    index = dashboard.index
    rows = await asyncio.to_thread(index.rows)
    now = time.time()
    return show(
        request,
        "runs",
        "Runs",
        query=query,
        found=run_list.find(rows, query, index.text),
        filters=_filters(rows, query),
        programs=run_list.programs(rows, query, now),
        progress=index.progress(),
        unreadable=index.unreadable(),
        newest=max((row.started for row in rows), default=0.0),
        now=now,
        lists=run_list,
        longest_note=LONGEST_NOTE,
        most_picked=MOST_RUNS,
    )


def _filters(
    rows: list[Any], query: RunQuery
) -> list[tuple[str, str, list[run_list.FilterChoice]]]:
    """Name, title and values of each; one with nothing to choose is left out."""
    titles = {"kind": "Kind", "status": "Status", "tag": "Tag", "program": "Program"}
    found = []
    for name, title in titles.items():
        values = run_list.choices(rows, name)
        chosen = getattr(query, name)
        if chosen and chosen not in {choice.value for choice in values}:
            values.append(run_list.FilterChoice(chosen, 0))
        if len(values) > 1 or chosen or (name == "tag" and values):
            found.append((name, title, values))
    return found


def _comparison(dashboard: Dashboard, picked: list[str]) -> str:
    """The oldest run first. Two are compared, cause by cause; more are laid over each other."""
    if not 2 <= len(set(picked)) <= MOST_RUNS:
        raise ToolError(
            f"Choose two to {MOST_RUNS} runs to compare.", hint="Go back and check some of them."
        )
    for run in picked:
        dashboard.folder_of(run)
    rows = {row.run: row for row in dashboard.index.rows()}
    ordered = sorted(set(picked), key=lambda run: rows[run].started if run in rows else 0.0)
    return compare_address(*ordered) if len(ordered) == 2 else overlay_address(ordered)


async def _data(request: Request) -> Response:
    """The same rows as data; `since` asks how many began after that moment, too."""
    index = dashboard_of(request).index
    given = request.query_params.multi_items()
    query = run_list.parse_query(pair for pair in given if pair[0] != _SINCE)
    since = _moment(request.query_params.get(_SINCE))
    rows = await asyncio.to_thread(index.rows)
    found = run_list.find(rows, query, index.text)
    answer = {
        "runs": [run_list.as_data(row) for row in found.rows],
        "total": found.total,
        "matching": found.matching,
        "page": found.page,
        "pages": found.pages,
        "read": index.progress().read,
        "new": sum(row.started > since for row in rows) if since is not None else None,
        "unreadable": [{"run": run, "reason": why} for run, why in index.unreadable()],
    }
    return Response(plain_json(answer), media_type="application/json")


def _moment(given: str | None) -> float | None:
    try:
        return float(given) if given is not None else None
    except ValueError:
        raise ToolError("since must be a time in seconds since 1970.") from None


async def _label(request: Request) -> Response:
    dashboard = dashboard_of(request)
    run = request.path_params["run"]
    folder = dashboard.folder_of(run)
    async with request.form() as form:
        fields = {name: value for name, value in form.multi_items() if isinstance(value, str)}
        if set(form) - set(_FIELDS) or len(fields) != len(form.multi_items()):
            raise ToolError("Tags and a note were expected, and nothing else.")
    write_labels(folder, make_labels(split_tags(fields.get("tags", "")), fields.get("note", "")))
    dashboard.index.changed(run)
    return RedirectResponse(_own(fields.get("back", "")) or run_address(run), 303)


def _own(address: str) -> str:
    """An address of this server, or nothing."""
    plain = address.startswith("/") and address.isprintable() and address.isascii()
    return address if plain and address[1:2] not in ("/", "\\") else ""


PAGE = DashboardPage(
    "runs",
    10,
    (
        Address("/", _list, open=True),
        Address("/runs.json", _data, open=True),
        Address("/runs/{run}/labels", _label, method="POST"),
    ),
    "Runs",
)
