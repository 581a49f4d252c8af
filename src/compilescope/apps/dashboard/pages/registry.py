"""Graph breaks: search, the page of each, and the user's own notes on them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.graph_breaks import RegistryQuery, find
from compilescope.apps.dashboard.server.page import Address, DashboardPage, read_fields, show
from compilescope.apps.dashboard.server.state import Dashboard, dashboard_of
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry.notes import (
    BIGGEST_BYTES,
    NoteChanged,
    encoded,
    own_note,
    save_note,
    stamp_of,
)
from compilescope.knowledge.registry.table import normal_id
from compilescope.report.site.content import Content
from compilescope.report.site.content import Page as BreakPage
from compilescope.report.site.pages import entry_values, home_values, shared_values
from compilescope.report.site.words import note_html

_FRAME = "registry_frame.html"
_FIELDS = tuple(RegistryQuery.__dataclass_fields__)
_DONE = {"saved": "Saved.", "deleted": "Deleted."}
_MOST_RUNS = 12
"""Runs that met a graph break. Chosen: the newest; all are counted."""


@dataclass(frozen=True)
class _Links:
    """From one page of the registry to others, in the dashboard."""

    home: str = "/registry"

    def entry(self, gb_id: str) -> str:
        return f"/registry/{gb_id}"

    def category(self, category_id: str) -> str:
        return f"/registry?category={category_id}"

    def version(self, release: str) -> str:
        return f"/registry?since={quote(release)}"


async def _content(request: Request) -> Content | ToolError:
    """Or why there is none."""
    try:
        return await asyncio.to_thread(dashboard_of(request).graph_breaks.content)
    except ToolError as error:
        return error


def _no_table(request: Request, error: ToolError) -> Response:
    return show(request, "registry_missing", "Registry", error=error)


async def _search(request: Request) -> Response:
    content = await _content(request)
    if isinstance(content, ToolError):
        return _no_table(request, content)
    return await asyncio.to_thread(_listed, request, content)


def _listed(request: Request, content: Content) -> Response:
    query = request.query_params
    question = RegistryQuery(**{name: query.get(name, "") for name in _FIELDS})
    found = find(content, question)
    ids = {page.gb_id for page in found}
    rest = [page for page in content.ranked if page.gb_id not in ids]
    values = {
        **shared_values(content),
        **home_values(content, [*found, *rest]),
        "action": "/registry",
        "asked": {name: getattr(question, name) for name in _FIELDS},
        "shown": ids if question.asks else None,
    }
    return show(request, "registry_home", "Registry", frame=_FRAME, link=_Links(), **values)


async def _entry(request: Request) -> Response:
    wanted = request.path_params["gb_id"]
    # Notes lead to each other as files of the site.
    known = normal_id(wanted.removesuffix(".html"))
    if known is not None and known != wanted:
        return RedirectResponse(f"/registry/{known}", 301)
    content = await _content(request)
    if isinstance(content, ToolError):
        return _no_table(request, content)
    page = _page_of(content, wanted)
    dashboard = dashboard_of(request)
    editing = await asyncio.to_thread(_own, dashboard, page.gb_id)
    values = {
        **shared_values(content),
        **entry_values(content, page),
        "own": editing,
        "done": _DONE.get(request.query_params.get("done", ""), ""),
        "seen": await asyncio.to_thread(_seen, dashboard, page.gb_id),
    }
    title = f"{page.gb_id} {page.title}"
    return show(request, "registry_page", title, frame=_FRAME, link=_Links(), **values)


def _page_of(content: Content, wanted: str) -> BreakPage:
    page = content.by_id.get(wanted)
    if page is None:
        raise MissingPage(
            f"The table of {content.name} has no graph break {wanted[:40]!r}.",
            hint="Another torch may have it. Search the registry for words of its message.",
        )
    return page


@dataclass(frozen=True)
class _Own:
    """The user's own note as it stands."""

    path: Path | None
    """None: the server was started without a folder for notes."""
    text: str = ""
    problem: str = ""
    """Why it cannot be read or edited."""


def _own(dashboard: Dashboard, gb_id: str) -> _Own:
    folder = dashboard.options.notes
    if folder is None:
        return _Own(None)
    path = folder / f"{gb_id.lower()}.md"
    try:
        return _Own(path, own_note(folder, gb_id))
    except ToolError as error:
        return _Own(path, problem=error.message)


def _seen(dashboard: Dashboard, gb_id: str) -> dict[str, object]:
    """Runs that have this graph break."""
    rows = [row for row in dashboard.index.rows() if gb_id in row.gb_ids]
    return {"rows": rows[:_MOST_RUNS], "count": len(rows)}


# Editing


async def _edit(request: Request) -> Response:
    page = await _editable(request)
    own = await asyncio.to_thread(_own, dashboard_of(request), page.gb_id)
    if own.problem:
        raise ToolError(own.problem)
    return _form(request, page, own.text, stamp_of(own.text))


async def _editable(request: Request) -> BreakPage:
    content = await _content(request)
    if isinstance(content, ToolError):
        raise content
    if dashboard_of(request).options.notes is None:
        raise ToolError(
            "There is no folder for notes.", hint="Start the server with --notes DIR to edit them."
        )
    return _page_of(content, request.path_params["gb_id"])


def _form(
    request: Request, page: BreakPage, text: str, loaded: str, *, status: int = 200, **more: Any
) -> Response:
    folder = dashboard_of(request).options.notes
    assert folder is not None
    known: dict[str, Any] = {"preview": None, "now": None, "confirm": False}
    return show(
        request,
        "registry_note",
        f"Note on {page.gb_id}",
        status=status,
        page=page,
        link=_Links(),
        text=text,
        loaded=loaded,
        path=folder / f"{page.gb_id.lower()}.md",
        most=BIGGEST_BYTES // 1024,
        **{**known, **more},
    )


async def _save(request: Request) -> Response:
    page = await _editable(request)
    fields = await read_fields(request, ("text", "loaded", "action", "confirm"))
    text, loaded = fields["text"], fields["loaded"]
    action = fields["action"] or "save"
    if action not in ("save", "preview") or fields["confirm"] not in ("", "delete"):
        raise ToolError("A note can be saved or previewed.")
    encoded(text)
    folder = dashboard_of(request).options.notes
    assert folder is not None
    if action == "preview":
        drawn = await asyncio.to_thread(note_html, text)
        return _form(request, page, text, loaded, preview=drawn)
    deletes = not text.strip()
    if deletes and not fields["confirm"]:
        now = await asyncio.to_thread(own_note, folder, page.gb_id)
        if now:
            return _form(request, page, text, loaded, confirm=True)
    try:
        await asyncio.to_thread(save_note, folder, page.gb_id, text, loaded)
    except NoteChanged as error:
        # Both are shown; what is saved now is the writer's choice, knowing the other.
        return _form(request, page, text, stamp_of(error.now), status=409, now=error.now)
    done = "deleted" if deletes else "saved"
    return RedirectResponse(f"/registry/{page.gb_id}?done={done}#note", 303)


PAGE = DashboardPage(
    "registry",
    100,
    (
        Address("/registry", _search),
        Address("/registry/{gb_id}", _entry),
        Address("/registry/{gb_id}/note", _edit),
        # Each byte of a text may become three in a form.
        Address("/registry/{gb_id}/note", _save, "POST", most_bytes=4 * BIGGEST_BYTES),
    ),
    "Registry",
)
