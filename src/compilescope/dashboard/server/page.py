"""A page of the dashboard: its place in the navigation, and the requests that it answers.

Of a form that a browser sent only known fields are read, each once, as text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from compilescope.errors import ToolError

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
