"""Forms that start commands, each with the command line that it stands for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.fields.form import FilledForm, Form, all_forms, fill
from compilescope.apps.dashboard.fields.kinds import FormPlace
from compilescope.apps.dashboard.jobs.service import TooManyJobs
from compilescope.apps.dashboard.server.page import Address, DashboardPage, show
from compilescope.apps.dashboard.server.state import Dashboard, dashboard_of
from compilescope.base.errors import ToolError

FIELD, FOLDER = "_field", "_folder"
"""Of the page that browses: which field it is for, and which folder it shows."""
_MOST_PAIRS = 300
"""Fields of a form with their values. Chosen: a bound for what anyone may send."""
_MOST_RUNS = 200
"""To choose from; any other can be typed. Chosen: more would only make the page longer."""


async def _cards(request: Request) -> Response:
    dashboard = dashboard_of(request)
    return show(
        request,
        "start",
        "Start",
        forms=all_forms(),
        folders=dashboard.folders.folders,
        upload_bytes=dashboard.options.limits.upload_bytes,
    )


async def _show(request: Request) -> Response:
    given = _given(request.query_params.multi_items())
    filled = await _filled(request, given)
    # Nobody has typed anything yet: only what the address brought can be wrong.
    return await _page(request, filled, {n: e for n, e in filled.errors.items() if n in given})


async def _command(request: Request) -> Response:
    """The command line, for the script that shows it while somebody types."""
    filled = await _filled(request, _given(request.query_params.multi_items()))
    return JSONResponse({"line": filled.line, "errors": dict(filled.errors)})


async def _start(request: Request) -> Response:
    async with request.form(max_files=0, max_fields=_MOST_PAIRS) as sent:
        pairs = [(name, value) for name, value in sent.multi_items() if isinstance(value, str)]
    filled = await _filled(request, _given(pairs))
    if filled.form.problem:
        raise ToolError(filled.form.problem)
    if filled.errors:
        return await _page(request, filled, filled.errors, status=400)
    dashboard = dashboard_of(request)
    try:
        job = await asyncio.to_thread(
            dashboard.jobs.start,
            filled.words,
            filled.cwd or _anywhere(dashboard),
            title=f"{filled.form.id} {filled.subject}".strip(),
            form=filled.form.id,
            values=filled.given,
            writes=filled.writes,
            limit_s=filled.limit_s,
        )
    except TooManyJobs as error:
        raise HTTPException(429, f"{error.message} {error.hint}") from None
    # Of one program there is one run to look at: its page opens as soon as it is there.
    live = "?live=1" if filled.form.id == "run" else ""
    return RedirectResponse(f"/jobs/{job.id}{live}", 303)


async def _browse(request: Request) -> Response:
    """Folders and scripts to choose from. What was typed into the form travels along."""
    form = _form(request)
    given = _given(request.query_params.multi_items())
    name = given.pop(FIELD, ["script"])[0]
    at = given.pop(FOLDER, [""])[0]
    field = next((each for each in form.fields if each.name == name), None)
    if field is None or field.kind.control != "script":
        raise ToolError(f"The form {form.id!r} has no field {name[:80]!r} to browse for.")
    folders = dashboard_of(request).folders

    def chosen(path: object) -> str:
        return f"/start/{form.id}?{_query({**given, name: [str(path)]})}"

    def opened(path: object) -> str:
        here = {**given, FIELD: [name], FOLDER: [str(path)]}
        return f"/start/{form.id}/browse?{_query(here)}"

    if not at and len(folders.folders) == 1:
        at = str(folders.folders[0])
    listing = await asyncio.to_thread(folders.browse, at) if at else None
    return show(
        request,
        "browse",
        f"Choose: {field.label}",
        form=form,
        label=field.label,
        listing=listing,
        roots=folders.folders,
        chosen=chosen,
        opened=opened,
        takes_folders=field.name == "source",
        back=f"/start/{form.id}?{_query(given)}",
    )


async def _page(
    request: Request, filled: FilledForm, errors: Mapping[str, str], status: int = 200
) -> Response:
    dashboard = dashboard_of(request)
    controls = {each.kind.control for each in filled.form.fields}
    browses = "script" in controls
    scripts = await asyncio.to_thread(dashboard.folders.scripts) if browses else []
    runs = [row.run for row in dashboard.index.rows()[:_MOST_RUNS]] if "run" in controls else []
    return show(
        request,
        "form",
        filled.form.title,
        status=status,
        form=filled.form,
        given=filled.given,
        errors=errors,
        line=filled.line,
        scripts=scripts,
        runs=runs,
        folded=lambda group: not any(_is_given(filled, errors, each.name) for each in group.fields),
    )


def _is_given(filled: FilledForm, errors: Mapping[str, str], name: str) -> bool:
    return name in errors or any(text.strip() for text in filled.given.get(name, ()))


async def _filled(request: Request, given: Mapping[str, Sequence[str]]) -> FilledForm:
    dashboard = dashboard_of(request)
    place = FormPlace(dashboard.folders, dashboard.options.home)
    # It looks at files.
    return await asyncio.to_thread(fill, _form(request), given, place)


def _form(request: Request) -> Form:
    wanted = request.path_params["command"]
    for form in all_forms():
        if form.id == wanted:
            return form
    raise MissingPage(f"There is no form {wanted[:80]!r}.")


def _given(pairs: Sequence[tuple[str, Any]]) -> dict[str, list[str]]:
    if len(pairs) > _MOST_PAIRS:
        raise ToolError(f"A form may send at most {_MOST_PAIRS} values.")
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    return given


def _query(given: Mapping[str, Sequence[str]]) -> str:
    return urlencode(
        [(name, value) for name, values in given.items() for value in values if value.strip()]
    )


def _anywhere(dashboard: Dashboard) -> str:
    """For commands that need no folder of their own: the first that is allowed."""
    folders = dashboard.folders.folders
    return str(folders[0] if folders else dashboard.options.home.parent)


PAGE = DashboardPage(
    "start",
    20,
    (
        Address("/start", _cards),
        Address("/start/{command}", _show),
        Address("/start/{command}", _start, "POST"),
        Address("/start/{command}/command", _command),
        Address("/start/{command}/browse", _browse),
    ),
    "Start",
)
