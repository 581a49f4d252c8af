"""The frame around every page: navigation, and the blocks of a report inside it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from compilescope.dashboard.server.page import DashboardPage
from compilescope.dashboard.server.safety import has_token
from compilescope.report.render.html import draw, scripts, styles
from compilescope.report.render.safe_html import finalize
from compilescope.site.pages import ASSETS, TEMPLATES, template_filters
from compilescope.version import VERSION

_HERE = Path(__file__).parents[1]
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def show(
    request: Request,
    template: str,
    title: str,
    *,
    status: int = 200,
    sections: Markup | str = "",
    packed: Markup | str = "",
    **values: Any,
) -> Response:
    """A page of the dashboard: the template fills the frame."""
    text = (
        _environment()
        .get_template(f"{template}.html")
        .render(
            title=title,
            sections=sections,
            packed=packed,
            pages=request.app.state.pages,
            here=request.scope.get("page", ""),
            within=_within(request),
            shortcuts=shortcuts(request.app.state.pages),
            signed_in=has_token(request),
            assets={name: address for name, (address, _) in assets().items()},
            version=VERSION,
            **values,
        )
    )
    return HTMLResponse(text, status)


@functools.cache
def assets() -> dict[str, tuple[str, bytes]]:
    """Name -> address, which changes with the content, and content."""
    texts = {
        "report.css": str(styles(page=True)),
        "report.js": str(scripts()),
        "dashboard.css": _joined("styles", "css"),
        "dashboard.js": _joined("scripts", "js"),
        "icon.svg": _joined("styles", "svg"),
        # Of the registry's site: within its own pages, above what the frame says.
        "registry.css": f"main.registry {{\n{_site_asset('registry.css')}}}\n",
        "registry.js": _site_asset("site.js"),
    }
    found = {}
    for name, text in texts.items():
        data = text.encode()
        stem, _, kind = name.partition(".")
        found[name] = (f"/assets/{stem}-{hashlib.sha256(data).hexdigest()[:12]}.{kind}", data)
    return found


def _within(request: Request) -> str:
    """The page of the navigation that the one shown belongs to: that of the same ten."""
    order = request.scope.get("order", -1) // 10 * 10
    pages = [page.id for page in request.app.state.pages if page.order == order]
    return pages[0] if pages else ""


def shortcuts(pages: Sequence[DashboardPage]) -> list[tuple[str, DashboardPage]]:
    """The letter for each page: the first of its title that no page before it has."""
    taken: dict[str, DashboardPage] = {}
    for page in pages:
        free = (letter for letter in page.title.lower() if letter.isalpha() and letter not in taken)
        letter = next(free, "")
        if letter:
            taken[letter] = page
    return list(taken.items())


async def answer_asset(request: Request) -> Response:
    for address, data in assets().values():
        if address == request.url.path:
            media = _TYPES[address.rpartition(".")[2]]
            forever = {"cache-control": "public, max-age=31536000, immutable"}
            return Response(data, media_type=media, headers=forever)
    return Response(status_code=404)


def _joined(folder: str, kind: str) -> str:
    paths = sorted((_HERE / folder).glob(f"*.{kind}"))
    return "".join(path.read_text(encoding="utf-8") for path in paths)


def _site_asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader([_HERE / "templates", TEMPLATES]),
        autoescape=True,
        finalize=finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(draw=draw)
    environment.filters.update(template_filters())
    return environment
