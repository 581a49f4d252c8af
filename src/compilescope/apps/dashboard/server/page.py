"""A page of the dashboard: its place in the navigation, the requests that it answers, and the frame
around what it shows.

Of a form that a browser sent only known fields are read, each once, as text.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from compilescope.apps.dashboard.server.safety import has_token
from compilescope.base.errors import ToolError
from compilescope.base.version import VERSION
from compilescope.report.render.html import draw, scripts, styles
from compilescope.report.render.safe_html import finalize
from compilescope.report.site.pages import ASSETS, TEMPLATES, template_filters

_TYPE = "application/x-www-form-urlencoded"


async def read_fields(request: Request, names: Collection[str]) -> dict[str, str]:
    """Every name has a value, empty where it was not sent. Nothing is guessed or replaced: what is
    not UTF-8 is refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise ToolError("This form is not sent in the way that this page sends it.")
    body = await request.body()
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=len(names) + 8,
        )
    except UnicodeError:
        raise ToolError("What was sent is not UTF-8 text.") from None
    except ValueError:
        raise ToolError("What was sent has too many fields.") from None
    found = dict.fromkeys(names, "")
    seen = set()
    for name, value in pairs:
        if name not in found:
            raise ToolError(f"There is no field {name[:60]!r} here.")
        if name in seen:
            raise ToolError(f"The field {name!r} was sent twice.")
        seen.add(name)
        found[name] = value
    return found


FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Address:
    """What a browser can ask for, and who answers it."""

    pattern: str
    """As Starlette has it: `/runs/{run}`."""
    handler: Handler
    method: str = "GET"
    open: bool = False
    """Needs no token: it only reads, and only what lies in the folder of runs. Whatever else a
    request does, it needs one."""
    anyone: bool = False
    """Needs no token whatever it does: it is how one gets in."""
    types: tuple[str, ...] = FORMS
    """Kinds of bodies that it reads; empty: any."""
    most_bytes: int | None = None
    """Of its body; None: as much as a form may have."""


@dataclass(frozen=True)
class DashboardPage:
    """One module of `dashboard.pages`."""

    id: str
    order: int
    addresses: tuple[Address, ...]
    title: str = ""
    """In the navigation; empty: it is reached from other pages."""

    @property
    def link(self) -> str:
        return self.addresses[0].pattern


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
            shortcuts=_shortcuts(request.app.state.pages),
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


def _shortcuts(pages: Sequence[DashboardPage]) -> list[tuple[str, DashboardPage]]:
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
