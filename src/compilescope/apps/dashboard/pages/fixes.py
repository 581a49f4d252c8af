"""Searches for fixes: what was verified, and a button that puts it into the user's files."""

from __future__ import annotations

import asyncio
import datetime
import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.apps.dashboard.addresses import MissingPage, fix_address, run_address
from compilescope.apps.dashboard.runs.fix_runs import FixRun
from compilescope.apps.dashboard.runs.rows import RunRow
from compilescope.apps.dashboard.server.page import Address, DashboardPage, read_fields, show
from compilescope.apps.dashboard.server.state import Dashboard, dashboard_of
from compilescope.base.errors import ToolError
from compilescope.change.repair.delivery.stored_fix import (
    BY_HAND,
    apply_stored,
    check_origin,
    check_stored,
    file_states,
    standing_of,
)
from compilescope.report.blocks import Block, Span, Table, Words, words
from compilescope.report.render.html import draw
from compilescope.report.sections.fixes import attempt_blocks, outcome_blocks, verdict_of

_ON_A_PAGE = 50
"""Searches. Chosen: each is read while the reader waits."""
_COMMIT = "Commit or stash them first, or check the box above the button."


async def _list(request: Request) -> Response:
    dashboard = dashboard_of(request)
    number = request.query_params.get("page", "1")
    if not number.isdecimal() or len(number) > 9 or not 1 <= int(number) <= 10_000:
        raise ToolError("There is no such page of the list.")
    rows, pending = await asyncio.to_thread(_searches, dashboard)
    first = (int(number) - 1) * _ON_A_PAGE
    shown = rows[first : first + _ON_A_PAGE]
    found = await asyncio.to_thread(_read_all, dashboard, [row.run for row in shown])
    table = [_table([(row.program, each) for row, each in zip(shown, found, strict=True)])]
    return show(
        request,
        "fixes",
        "Fixes",
        table=draw(table) if shown else "",
        total=len(rows),
        number=int(number),
        more=first + len(shown) < len(rows),
        pending=pending,
    )


def _searches(dashboard: Dashboard) -> tuple[list[RunRow], int]:
    """Newest first; and of how many runs it is not known yet what they are."""
    rows = dashboard.index.rows()
    unknown = [row for row in rows if row.pending]
    # A search that just ended is looked for at once.
    looked = unknown[:_ON_A_PAGE]
    just_read = _read_all(dashboard, [row.run for row in looked])
    fresh = {
        row.run
        for row, each in zip(looked, just_read, strict=True)
        if each is not None and (each.attempts or each.fix)
    }
    found = [row for row in rows if row.kind == "fix" or row.run in fresh]
    return found, len(unknown) - len(looked)


def _read_all(dashboard: Dashboard, runs: Sequence[str]) -> list[FixRun | None]:
    """None for one that was deleted meanwhile, or is damaged."""
    found: list[FixRun | None] = []
    for run in runs:
        try:
            found.append(dashboard.fix_runs.read(dashboard.folder_of(run)))
        except (ToolError, OSError):
            found.append(None)
    return found


def _table(rows: Sequence[tuple[str, FixRun | None]]) -> Table:
    columns = ("program", "when", "result", "fixes kept", "not used", "search")
    return Table(
        columns,
        tuple(_row(program, each) for program, each in rows if each is not None),
        numeric=(3, 4),
    )


def _row(program: str, found: FixRun) -> tuple[Words, ...]:
    run = found.header.run
    kept = sum(each.kept for each in found.attempts)
    when = datetime.datetime.fromtimestamp(found.header.started_ns / 1e9)
    if found.fix is not None:
        result = Span(*verdict_of(found.fix, list(found.attempts)))
    else:
        result = Span("Recorded by an earlier version.", "dim")
    return (
        words(Span(program, url=fix_address(run))),
        words(f"{when:%Y-%m-%d %H:%M}"),
        words(result),
        words(str(kept)),
        words(str(len(found.attempts) - kept)),
        words(Span(run, "code", url=run_address(run))),
    )


async def _show(request: Request) -> Response:
    return await asyncio.to_thread(_page, request)


def _page(
    request: Request, status: int = 200, problem: ToolError | None = None, force: bool = False
) -> Response:
    dashboard = dashboard_of(request)
    run = request.path_params["run"]
    found = _found(dashboard, run)
    fix = found.fix
    values: dict[str, Any] = {"states": [], "ready": False, "objection": "", "applied": None}
    values["origin"] = None
    blocks: list[Block] = []
    if fix is not None:
        blocks += outcome_blocks(fix, list(found.attempts), found.header.root)
        values |= _standing(dashboard, run, found)
        values["applied"] = dashboard.fix_runs.applied(run)
    return show(
        request,
        "fix",
        f"Fix for {' '.join(found.header.command) or run}",
        status=status,
        run=run,
        found=found,
        fix=fix,
        drawn=draw(blocks),
        tried=draw(attempt_blocks(found.attempts, fix.diff if fix is not None else "")),
        problem=problem,
        force=force,
        by_hand=BY_HAND,
        command=shlex.join(
            ("compilescope", "fix", "--dir", str(dashboard.options.home), "--apply", run)
        ),
        **values,
    )


def _found(dashboard: Dashboard, run: str) -> FixRun:
    try:
        found = dashboard.fix_runs.read(dashboard.folder_of(run))
    except OSError:
        raise MissingPage(f"There is no run {run!r}.", hint="It may have been deleted.") from None
    if not found.attempts and found.fix is None:
        raise MissingPage(f"The run {run} is not a search for fixes.")
    return found


def _standing(dashboard: Dashboard, run: str, found: FixRun) -> dict[str, Any]:
    """How the files are now, and what git says of them."""
    fix = found.fix
    assert fix is not None
    try:
        check_stored(fix)
    except ToolError:
        return {}
    try:
        check_origin(fix, dashboard.folder_of(run), found.header.run)
    except ToolError as error:
        # Nor is it said how files are that a stranger names.
        return {"origin": error}
    states = file_states(fix, dashboard.folders.check)
    ready = bool(states) and all(each.state == "ready" for each in states)
    objection = standing_of(list(fix.texts)).objection if ready else ""
    return {"states": states, "ready": ready, "objection": objection}


async def _apply(request: Request) -> Response:
    dashboard = dashboard_of(request)
    run = request.path_params["run"]
    fields = await read_fields(request, ("shown", "force"))
    if fields["force"] not in ("", "yes"):
        raise ToolError("The box is either checked or not.")
    force = fields["force"] == "yes"
    found = await asyncio.to_thread(_found, dashboard, run)
    if found.fix is None:
        raise ToolError(
            "An earlier version of compilescope recorded this search, without its whole result.",
            hint="Search again to get a fix that can be applied.",
        )
    try:
        if fields["shown"] != found.fix.outcome.changes:
            raise ToolError("This fix is not the one that the page showed. Look at it again.")
        check_origin(found.fix, dashboard.folder_of(run), found.header.run)
        done = await asyncio.to_thread(
            apply_stored,
            found.fix,
            force=force,
            check=dashboard.folders.check,
            folder=found.header.root,
            hint=_COMMIT,
        )
    except ToolError as error:
        return await asyncio.to_thread(_page, request, 409, error, force)
    dashboard.fix_runs.note_applied(run, done)
    return RedirectResponse(fix_address(run), 303)


async def _patch(request: Request) -> Response:
    run = request.path_params["run"]
    found = await asyncio.to_thread(_found, dashboard_of(request), run)
    diff = found.fix.diff if found.fix is not None and found.fix.verified else ""
    if not diff:
        raise MissingPage("This search has no verified change to download.")
    name = quote(f"{run}.patch", safe="")
    headers = {"content-disposition": f"attachment; filename*=utf-8''{name}"}
    data = diff.encode("utf-8", "surrogateescape")
    return Response(data, media_type="text/x-patch; charset=utf-8", headers=headers)


PAGE = DashboardPage(
    "fixes",
    90,
    (
        Address("/fixes", _list, open=True),
        Address("/fixes/{run}", _show),
        Address("/fixes/{run}/fix.patch", _patch, open=True),
        Address("/fixes/{run}/apply", _apply, "POST"),
    ),
    "Fixes",
)
