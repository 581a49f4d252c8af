"""What every request passes before a page sees it, and every answer before it leaves.

Beyond what every server on this machine refuses (`local_requests`): pages of others can do nothing
(Origin, Sec-Fetch-Site, a cookie that is not sent from elsewhere), some pages need the token, and
no script is let in but our own.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import time
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compilescope.apps.dashboard.server.options import Options
from compilescope.base.local_requests import (
    ANSWER_HEADERS,
    LOOPBACK_NAMES,
    SAFE_METHODS,
    LocalRequest,
    Refusal,
    comes_from_here,
    is_foreign,
    is_own_name,
    refusal,
    refused_reading,
)

_NAME_HINT = "If it should, start it with `compilescope serve --name NAME`.\n"
BODY_S = 20.0
"""How long a body may pause before whoever sends it is given up. Chosen: a network that stalls
recovers within it, or does not."""
_LEAST_BYTES_A_SECOND = 4 << 10
"""Whoever sends a body more slowly than this, beside that pause, is given up, too. Chosen: slow
even for a poor connection."""
_HEADERS = ANSWER_HEADERS | {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    )
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
        request = _local_request(scope)
        found = refusal(request, lambda host: self._answers_to(host, scope)) or self._foreign(
            request
        )
        if found is None:
            return None
        hint = _NAME_HINT if found.status == 421 else ""
        close = {"connection": "close"} if found.closes else None
        return PlainTextResponse(found.words + hint, found.status, close)

    def _foreign(self, request: LocalRequest) -> Refusal | None:
        """The answer to a page of another site; None where the request is not from one."""
        origins = self._origins(request.host)
        if request.method in SAFE_METHODS:
            return refused_reading(request, origins)
        unknown = not request.values("origin") and not _bears(request.value("authorization"))
        if is_foreign(request, origins) or unknown or not comes_from_here(request):
            return Refusal(403, "Only pages of this server may do this.\n")
        return None

    def _answers_to(self, host: str, scope: Scope) -> bool:
        """A name with a port is ours with our port alone; one that the user gave, as they gave
        it: a proxy or a container may have another."""
        names = (*LOOPBACK_NAMES, *self._options.hosts, *_called(scope))
        given = [name.lower() for name in self._options.hosts]
        return host in given or is_own_name(host, names, self._options.port)

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
        if _bears(headers.get("authorization", "")):
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


def _local_request(scope: Scope) -> LocalRequest:
    headers = [(name.decode("latin-1"), each.decode("latin-1")) for name, each in scope["headers"]]
    query = scope["query_string"]
    target = scope.get("raw_path", b"") + (b"?" + query if query else b"")
    return LocalRequest(scope["method"], target, scope["path"], tuple(headers))


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


def _bears(authorization: str) -> bool:
    return authorization.lower().startswith("bearer ")


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
    before its end, or comes a byte at a time."""
    seen = 0
    complete = False
    begun = time.monotonic()

    async def receiving() -> Message:
        nonlocal seen, complete
        if complete:
            return await receive()  # Until the client leaves.
        try:
            left_s = begun + BODY_S + seen / _LEAST_BYTES_A_SECOND - time.monotonic()
            message = await asyncio.wait_for(receive(), min(BODY_S, max(left_s, 0.0)))
        except (asyncio.TimeoutError, TimeoutError):
            raise HTTPException(408, "The request did not arrive completely.") from None
        seen += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if seen > most:
            raise too_much
        return message

    return receiving
