"""What every request passes before a page sees it, and every answer before it leaves.

A page of another site may send requests to this machine, and a name of its own may lead here. So
the server answers only to its own names (Host), does nothing for pages of others (Origin,
Sec-Fetch-Site, a cookie that is not sent from elsewhere), and lets no script in but its own.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compilescope.dashboard.options import LOOPBACK_NAMES, Options

SAFE_METHODS = ("GET", "HEAD")
BODY_S = 20.0
"""How long a body may pause before whoever sends it is given up."""
_MOST_HEADER_BYTES = 32 << 10
_MOST_ADDRESS_BYTES = 8 << 10
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    # With "no-referrer" a browser would call the origin of our own forms "null".
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


class Safety:
    """The first to see a request."""

    def __init__(self, app: ASGIApp, options: Options) -> None:
        self._app = app
        self._options = options
        self._once = options.once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = self._refusal(scope) or self._signed_in(scope)
        if answer is not None:
            await answer(scope, receive, _with_headers(send))
            return
        scope.setdefault("state", {})["has_token"] = self._has_token(scope)
        await self._app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        host = named[0].lower() if len(named) == 1 else ""
        if not host or not self._answers_to(host, scope):
            name = repr(host[:80]) if host else "that the request gives"
            return PlainTextResponse(
                f"This server does not answer to the name {name}.\n"
                "If it should, start it with `compilescope serve --name NAME`.\n",
                421,
            )
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _MOST_HEADER_BYTES:
            return PlainTextResponse("The headers of this request are too long.\n", 431)
        if len(scope.get("raw_path", b"")) + len(scope["query_string"]) > _MOST_ADDRESS_BYTES:
            return PlainTextResponse("This address is too long.\n", 414)
        if not _is_plain_path(scope["path"]):
            return PlainTextResponse("This is not a valid address.\n", 400)
        if "transfer-encoding" in headers and "content-length" in headers:
            # A proxy before us may believe the other one, and take the rest for another request.
            words = "This request gives its length in two ways.\n"
            return PlainTextResponse(words, 400, {"connection": "close"})
        return self._foreign(scope["method"], host, headers)

    def _foreign(self, method: str, host: str, headers: Headers) -> Response | None:
        """The answer to a page of another site; None where the request is not from one."""
        site = headers.get("sec-fetch-site", "none")
        origins = headers.getlist("origin")
        foreign = any(origin not in self._origins(host) for origin in origins)
        if method in SAFE_METHODS:
            # Somebody who follows a link to us: nothing that a GET does harms them.
            follows = (
                headers.get("sec-fetch-mode", "navigate") == "navigate"
                and headers.get("sec-fetch-dest", "document") == "document"
            )
            if foreign or (site not in ("same-origin", "none") and not follows):
                return PlainTextResponse("Pages of other sites may not read this.\n", 403)
            return None
        unknown = not origins and not _bears(headers)
        if foreign or unknown or site not in ("same-origin", "none"):
            return PlainTextResponse("Only pages of this server may do this.\n", 403)
        return None

    def _answers_to(self, host: str, scope: Scope) -> bool:
        """A name with a port is ours with our port alone; one that the user gave, as they gave
        it: a proxy or a container may have another."""
        names = (*LOOPBACK_NAMES, *self._options.hosts, *_called(scope))
        own = {f"{name.lower()}:{self._options.port}" for name in names}
        bare = {name.lower() for name in (names if self._options.port == 80 else ())}
        return host in own | bare | {name.lower() for name in self._options.hosts}

    def _origins(self, host: str) -> tuple[str, ...]:
        """What a browser calls the origin of our pages. Only a proxy that the user named speaks
        HTTPS for us."""
        names = [name.lower() for name in self._options.hosts]
        named = host in names or host in [f"{name}:{self._options.port}" for name in names]
        return (f"http://{host}", f"https://{host}") if named else (f"http://{host}",)

    def _signed_in(self, scope: Scope) -> Response | None:
        """The address with the token leaves a cookie behind, and the token out of sight."""
        if scope["method"] != "GET":
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if not given:
            return None
        if not all(self._is_token(value) or self._is_first(value) for value in given):
            scope.setdefault("state", {})["wrong_token"] = True
            return None
        rest = urlencode([pair for pair in query if pair[0] != "token"])
        path = local_path(quote(scope["path"]) + (f"?{rest}" if rest else ""))
        site = Headers(scope=scope).get("sec-fetch-site", "none")
        # A browser that came from another site would follow a redirect without the new cookie.
        answer = _onward(path) if site == "cross-site" else RedirectResponse(path, 303)
        return sign_in(answer, self._options)

    def _has_token(self, scope: Scope) -> bool:
        headers = Headers(scope=scope)
        if _bears(headers):
            return self._is_token(headers.get("authorization", "").partition(" ")[2].strip())
        # Others on this machine may have left cookies of the same name: one that fits is enough.
        wanted = cookie_name(self._options)
        pairs = (piece.strip().partition("=") for piece in headers.get("cookie", "").split(";"))
        return any([name == wanted and self._is_token(value) for name, _, value in pairs])

    def _is_token(self, given: str) -> bool:
        return is_token(given, self._options)

    def _is_first(self, given: str) -> bool:
        if not self._once or not hmac.compare_digest(given.encode(), self._once.encode()):
            return False
        self._once = ""
        return True


def is_token(given: str, options: Options) -> bool:
    """Takes as long for a token that is nearly right as for any other."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), options.token.encode())


def cookie_name(options: Options) -> str:
    """Cookies do not keep to ports: two dashboards of one machine must not share one."""
    return f"compilescope-{options.port}"


def sign_in(answer: Response, options: Options) -> Response:
    answer.set_cookie(cookie_name(options), options.token, httponly=True, samesite="strict")
    return answer


def has_token(request: Request) -> bool:
    return bool(request.scope.get("state", {}).get("has_token"))


def gave_wrong_token(request: Request) -> bool:
    """In the address, where it would have signed them in."""
    return bool(request.scope.get("state", {}).get("wrong_token"))


def local_path(wanted: str) -> str:
    """`wanted` as an address of this server; the first page if it could lead to another."""
    parts = urlsplit(wanted) if wanted.isascii() and wanted.isprintable() else None
    if parts is None or parts.scheme or parts.netloc or "\\" in wanted or wanted[:1] != "/":
        return "/"
    # Browsers take two slashes at the beginning for the name of a server.
    path = "/" + parts.path.lstrip("/")
    return f"{path}?{parts.query}" if parts.query else path


def _is_plain_path(path: str) -> bool:
    """No page has an address with `..`, a backslash or a control character, however encoded."""
    controls = any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in path)
    return path[:1] == "/" and not controls and "\\" not in path and ".." not in path.split("/")


def _called(scope: Scope) -> tuple[str, ...]:
    """The address of this machine that the client connected to: a page of another site can have
    any name lead here, but not make that name an address."""
    try:
        found = ipaddress.ip_address((scope.get("server") or ("",))[0])
    except ValueError:
        return ()
    if isinstance(found, ipaddress.IPv6Address):
        return (str(found.ipv4_mapped),) if found.ipv4_mapped else (f"[{found}]",)
    return (str(found),)


def _bears(headers: Headers) -> bool:
    return headers.get("authorization", "").lower().startswith("bearer ")


def _onward(path: str) -> Response:
    """A page of ours that leads on: what it asks for, it asks for with our cookie."""
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>compilescope</title>'
        f'<meta http-equiv="refresh" content="0;url={_attribute(path)}">'
        f'<p><a href="{_attribute(path)}">Continue to compilescope</a></p></html>'
    )


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


def limited(receive: Receive, most: int, too_much: Any) -> Receive:
    """A body that ends in `too_much` once it is longer than that, and in an error if it stops
    before its end."""
    seen = 0
    complete = False

    async def receiving() -> Message:
        nonlocal seen, complete
        if complete:
            return await receive()  # Until the client leaves.
        try:
            message = await asyncio.wait_for(receive(), BODY_S)
        except (asyncio.TimeoutError, TimeoutError):
            raise HTTPException(408, "The request did not arrive completely.") from None
        seen += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if seen > most:
            raise too_much
        return message

    return receiving
