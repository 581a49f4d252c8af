"""The web application: all pages, behind what guards them; served until it is told to stop.

One whose other side never reads, or never says what it wants: what is written to it waits in memory
and holds its socket, also after the answer is complete, for to close such a connection is to wait
for its reader. And where there are more connections than files may be open, whoever has waited
longest without asking for anything makes room.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from compilescope.apps.dashboard import pages
from compilescope.apps.dashboard.addresses import MissingPage
from compilescope.apps.dashboard.drawing_workers import StillDrawing
from compilescope.apps.dashboard.pages.sign_in import ask_for_token
from compilescope.apps.dashboard.server.options import Options
from compilescope.apps.dashboard.server.page import (
    Address,
    DashboardPage,
    Handler,
    answer_asset,
    show,
)
from compilescope.apps.dashboard.server.safety import Safety, gave_wrong_token, has_token, limited
from compilescope.apps.dashboard.server.state import Dashboard
from compilescope.base.errors import ToolError
from compilescope.base.local_requests import SAFE_METHODS, STALLED_S
from compilescope.base.plugins import discover

_WORDS = {404: "There is no such page.", 405: "This address does not answer to that method."}


def all_pages() -> list[DashboardPage]:
    return sorted(discover(pages, "PAGE", DashboardPage), key=lambda page: page.order)


def make_app(options: Options) -> Starlette:
    dashboard = Dashboard(options)
    found = all_pages()
    routes = [
        Route(address.pattern, _guarded(page, address, options), methods=[address.method])
        for page in found
        for address in page.addresses
    ]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with dashboard.running():
            yield

    app = Starlette(
        routes=[*routes, Route("/assets/{name}", answer_asset)],
        middleware=[Middleware(Safety, options=options)],
        exception_handlers={
            ToolError: _told,
            StillDrawing: _still_drawing,
            HTTPException: _refused,
            Exception: _failed,
        },
        lifespan=lifespan,
    )
    app.state.dashboard = dashboard
    app.state.pages = [page for page in found if page.title]
    return app


def _guarded(page: DashboardPage, address: Address, options: Options) -> Handler:
    most = options.limits.form_bytes if address.most_bytes is None else address.most_bytes
    is_open = address.anyone or (
        address.open and address.method == "GET" and not options.everything_needs_token
    )

    async def answer(request: Request) -> Response:
        request.scope.update(page=page.id, order=page.order)
        if gave_wrong_token(request) or not (is_open or has_token(request)):
            return ask_for_token(request)
        too_much = HTTPException(413, f"A request may have at most {most:,} bytes here.")
        _check_body(request, address, most, too_much)
        limits = limited(request.receive, most, too_much)
        try:
            return await address.handler(Request(request.scope, limits))
        except (HTTPException, ToolError):
            raise
        except ClientDisconnect:
            return Response(status_code=400)  # Nobody hears it.
        except Exception as error:
            # Here and not further out, where the answer would go without its headers.
            traceback.print_exception(error)
            return await _failed(request, error)

    return answer


def _check_body(request: Request, address: Address, most: int, too_much: HTTPException) -> None:
    """What can be said before any of it is read."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
        raise too_much
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method not in SAFE_METHODS and kind and kind not in (address.types or (kind,)):
        raise HTTPException(415, f"This needs {' or '.join(address.types)}.")


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, ToolError)
    status = 404 if isinstance(error, MissingPage) else 400
    return _problem(request, status, error.message, error.hint)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = _WORDS.get(error.status_code, error.detail)
    answer = _problem(request, error.status_code, words)
    answer.headers.update(error.headers or {})
    return answer


async def _still_drawing(request: Request, error: Exception) -> Response:
    """The worker goes on; the page asks again by itself, without any script."""
    words = "Preparing this page…"
    hint = "compilescope is reading what was recorded; a large run takes up to a minute."
    answer = _problem(request, 202, words, hint, template="pending")
    answer.headers["refresh"] = "1"
    return answer


async def _failed(request: Request, error: Exception) -> Response:
    hint = "The terminal or log of `compilescope serve` shows what. Please report it."
    return _problem(request, 500, "Something went wrong in compilescope.", hint)


def _problem(
    request: Request, status: int, message: str, hint: str = "", *, template: str = "problem"
) -> Response:
    """For a person a page, for a script the same as data."""
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": message, "hint": hint}, status)
    return show(request, template, message, status=status, message=message, hint=hint, code=status)


_MOST = 1000
"""Connections at once, where the system allows it. Chosen: a bound for memory."""


class ReadConnection(H11Protocol):
    """One that drops a client that has taken nothing, or not finished its request's headers, for
    `stalled_s`."""

    stalled_s = STALLED_S
    most = _MOST
    """Connections at once; answers that are under way may be more."""
    _since = 0.0
    _watch: asyncio.TimerHandle | None = None
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._await_request()
        if len(self.connections) > self.most:
            self._make_room()

    def _make_room(self) -> None:
        waiting = [
            each
            for each in self.connections
            if isinstance(each, ReadConnection) and each is not self and each.asks_for_nothing
        ]
        if waiting:
            # Rather one that says nothing than one that is sending a body.
            oldest = min(
                waiting, key=lambda each: (each.conn.their_state is not h11.IDLE, each._since)
            )
            oldest.transport.abort()

    @property
    def asks_for_nothing(self) -> bool:
        """Neither is it being answered, nor was it dropped already."""
        answered = self.conn.their_state is h11.DONE and self.conn.our_state is not h11.DONE
        return not answered and not self.transport.is_closing()

    def _await_request(self) -> None:
        self._patience = self.loop.call_later(self.stalled_s, self._came, self.cycle)

    def _came(self, before: object) -> None:
        if self.conn.their_state is h11.IDLE and self.cycle is before:
            self.transport.abort()
        else:
            self._await_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            # Not at once: who still sends would not hear the answer. Each byte puts off uvicorn's
            # own limit, so a question that has been answered could be sent forever.
            self.loop.call_later(self.stalled_s, self._drop_answered, self.cycle)

    def _drop_answered(self, cycle: object) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._watch is None:
            self._look_again()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_looking()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_looking()
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _look_again(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._watch = self.loop.call_later(self.stalled_s, self._look, waiting)

    def _look(self, before: int) -> None:
        # While writing is paused nothing is added: less to send means that somebody reads.
        if self.transport.get_write_buffer_size() < before:
            self._look_again()
        else:
            self._watch = None
            self.transport.abort()

    def _stop_looking(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None


def _read_within(stalled_s: float) -> type[ReadConnection]:
    return type(
        "ReadConnection", (ReadConnection,), {"stalled_s": stalled_s, "most": most_connections()}
    )


def most_connections() -> int:
    """Half of the files that we may open: pages, workers and jobs need some, too."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY:
            return max(16, min(_MOST, soft // 2))
    return _MOST


_BACKLOG = 128
"""Connections that may wait to be accepted. Chosen."""
_LAST_WORDS_S = 3
"""How long open connections may take to end once the server stops. Chosen: Ctrl-C should seem to
work."""


def serve(options: Options, told: Callable[[str], None]) -> None:
    """Until SIGTERM or Ctrl-C. `told` hears the address once browsers can open it."""
    with contextlib.closing(listening(options)) as opened:
        options = replace(options, port=opened.getsockname()[1])
        server = server_of(options)
        told(_address_of(options))
        with _ended_by_signals(server):
            server.run(sockets=[opened])


@contextlib.contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """uvicorn handles signals while it runs, then sends itself the same ones again to end the
    process as they usually do. Here an end in order is all that is wanted."""

    def leave(*_: object) -> None:
        server.should_exit = True

    numbers = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:  # As under `nohup`.
        numbers.append(hangup)
    before = {number: signal.signal(number, leave) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def server_of(options: Options, last_words_s: int = _LAST_WORDS_S) -> uvicorn.Server:
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    return _Server(
        uvicorn.Config(
            make_app(options),
            http=_read_within(options.limits.stalled_s),
            ws="none",
            # At most so many are accepted before any of them is looked at.
            backlog=_BACKLOG,
            # What strangers send must not fill the log; what fails here must be in it.
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=last_words_s,
        )
    )


_AT_THE_END = (
    "timeout graceful shutdown exceeded",
    "ASGI callable returned without completing response",
)


def _is_news(record: logging.LogRecord) -> bool:
    """That whoever is in the middle of something is cut off at the end is as it should be."""
    ended = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not ended and not any(words in str(record.msg) for words in _AT_THE_END)


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Else they would be waited for: the end of the application comes after that.
        self.config.app.state.dashboard.streams.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def _address_of(options: Options) -> str:
    """With the token; from this machine, where any address will do."""
    name = options.host if options.host not in ("0.0.0.0", "::") else "127.0.0.1"
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{options.port}/?token={options.token}"


def listening(options: Options) -> socket.socket:
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError(f"This machine has no address {options.host}.") from None
    family, _, _, _, address = found[0]
    opened = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        # Elsewhere it would let others take the port from us.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise _cannot_listen(options, error) from None
    return opened


def _cannot_listen(options: Options, error: OSError) -> ToolError:
    if error.errno == errno.EADDRNOTAVAIL:
        return ToolError(f"This machine has no address {options.host}.")
    if error.errno == errno.EADDRINUSE:
        message = f"Port {options.port} is already in use, maybe by another `compilescope serve`."
    else:
        message = f"Cannot use port {options.port}: {error.strerror}."
    return ToolError(message, hint="Choose another with --port; 0 picks a free one.")
