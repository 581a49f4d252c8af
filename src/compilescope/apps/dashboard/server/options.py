"""How the dashboard was started: where it is served, what it may touch, how much one may ask."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from compilescope.base.local_requests import STALLED_S


@dataclass(frozen=True)
class BrowserLimits:
    """How much a browser may ask of this machine."""

    jobs: int = 2
    """That run at once; others wait."""
    waiting: int = 50
    """Jobs that wait."""
    output_bytes: int = 16 << 20
    """Of one job: of more than this the beginning and the end are kept."""
    form_bytes: int = 256 << 10
    upload_bytes: int = 64 << 20
    viewers: int = 200
    """Live connections at once."""
    stalled_s: float = STALLED_S
    """A connection is dropped when its other side has read nothing for so long."""
    drawing_seconds: float = 2
    """How long a reader waits for a page before one appears that says so and asks again."""


@dataclass(frozen=True)
class Options:
    """How it is served, and what it may touch."""

    home: Path
    """Where runs are stored, absolute."""
    token: str = field(repr=False)
    """What a browser must have shown before it may run, write, or read outside of `home`."""
    once: str = field(default="", repr=False)
    """Signs in the first browser that shows it: for a command line, which others can see."""
    folders: tuple[Path, ...] = ()
    """Where programs may be started from and files be shown of, absolute and without links."""
    host: str = "127.0.0.1"
    port: int = 0
    hosts: tuple[str, ...] = ()
    """Names, beside those of the loopback, by which browsers may call the server."""
    private: bool = False
    """Without the token not even the runs can be read."""
    notes: Path | None = None
    """The user's own additional information on graph breaks, which can be edited."""
    limits: BrowserLimits = BrowserLimits()

    @property
    def everything_needs_token(self) -> bool:
        """Whoever may reach us from elsewhere has to show it for every page."""
        return self.private or bool(self.hosts) or not is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Does it lead to this machine alone?"""
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost"
