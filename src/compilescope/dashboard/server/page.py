"""A page of the dashboard: its place in the navigation, and the requests that it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

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
