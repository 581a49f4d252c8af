"""Requests to a server on this machine: which of them are answered at all.

A page of another site may send requests here, and a name of its own may lead here. So a server
answers only to its own names (Host), gives nothing to pages of others (Origin, Sec-Fetch-Site),
and takes no more of anything than a browser sends. The dashboard and the preview of the registry
both ask here, before they do anything for a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
SAFE_METHODS = ("GET", "HEAD")
STALLED_S = 30.0
"""A connection whose other side says or reads nothing for so long is dropped. Chosen: long for a
reader on the same machine; a browser that is gone frees its place soon."""
# Chosen: room for a browser with many cookies, and a bound for what anyone may send.
MOST_HEADER_BYTES = 32 << 10
MOST_ADDRESS_BYTES = 8 << 10
ANSWER_HEADERS = {
    "x-content-type-options": "nosniff",
    # With "no-referrer" a browser would call the origin of our own forms "null".
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
_MOST_SHOWN = 80
"""Letters of a host in a refusal. Chosen: a line of it, for anyone may send any name."""
_BETWEEN = len(": \r\n")


@dataclass(frozen=True)
class LocalRequest:
    """A request, as far as it matters here."""

    method: str
    target: bytes
    """As it was sent, with its query."""
    path: str
    """Decoded."""
    headers: tuple[tuple[str, str], ...]
    """Names in small letters."""

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]

    def value(self, name: str, otherwise: str = "") -> str:
        return next(iter(self.values(name)), otherwise)

    @property
    def host(self) -> str:
        """Empty where none is named, or more than one."""
        named = self.values("host")
        return named[0].strip().lower() if len(named) == 1 else ""


@dataclass(frozen=True)
class Refusal:
    """The answer instead of a page."""

    status: int
    words: str
    closes: bool = False
    """Nothing else on this connection can be trusted."""


def is_own_name(host: str, names: Iterable[str], port: int) -> bool:
    """A name with a port is ours with our port alone."""
    own = {name.lower() for name in names}
    return host in {f"{name}:{port}" for name in own} or (port == 80 and host in own)


def refusal(request: LocalRequest, answers_to: Callable[[str], bool]) -> Refusal | None:
    """Why this request is not answered, whatever it asks for; None where it may be."""
    host = request.host
    if not host or not answers_to(host):
        name = repr(host[:_MOST_SHOWN]) if host else "that the request gives"
        return Refusal(421, f"This server does not answer to the name {name}.\n")
    if header_bytes(request.headers) > MOST_HEADER_BYTES:
        return TOO_LONG_HEADERS
    if len(request.target) > MOST_ADDRESS_BYTES:
        return Refusal(414, "This address is too long.\n")
    if not _is_plain_path(request.path):
        return Refusal(400, "This is not a valid address.\n")
    if request.values("transfer-encoding") and request.values("content-length"):
        # A proxy before us may believe the other one, and take the rest for another request.
        return Refusal(400, "This request gives its length in two ways.\n", closes=True)
    return None


TOO_LONG_HEADERS = Refusal(431, "The headers of this request are too long.\n", closes=True)


def refused_reading(request: LocalRequest, origins: Iterable[str]) -> Refusal | None:
    """The answer to a page of another site that reads; None where the request is not from one."""
    # Somebody who follows a link to us: nothing that a GET does harms them.
    follows = (
        request.value("sec-fetch-mode", "navigate") == "navigate"
        and request.value("sec-fetch-dest", "document") == "document"
    )
    if is_foreign(request, origins) or not (comes_from_here(request) or follows):
        return Refusal(403, "Pages of other sites may not read this.\n")
    return None


def is_foreign(request: LocalRequest, origins: Iterable[str]) -> bool:
    """Does it name an origin that is not one of ours?"""
    own = frozenset(origins)
    return any(origin not in own for origin in request.values("origin"))


def comes_from_here(request: LocalRequest) -> bool:
    """By what a browser says; programs that are none say nothing."""
    return request.value("sec-fetch-site", "none") in ("same-origin", "none")


def header_bytes(headers: Iterable[tuple[str, str]]) -> int:
    return sum(len(name) + len(value) + _BETWEEN for name, value in headers)


def _is_plain_path(path: str) -> bool:
    """No page has an address with `..`, a backslash or a control character, however encoded."""
    controls = any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in path)
    return path[:1] == "/" and not controls and "\\" not in path and ".." not in path.split("/")
