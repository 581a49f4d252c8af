"""Serves the dashboard until it is told to stop, and drops connections that only wait.

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
from collections.abc import Callable, Iterator
from dataclasses import replace

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from compilescope.dashboard.server.app import make_app
from compilescope.dashboard.server.options import Options
from compilescope.errors import ToolError
from compilescope.local_requests import STALLED_S

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


def read_within(stalled_s: float) -> type[ReadConnection]:
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
        told(address_of(options))
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
            http=read_within(options.limits.stalled_s),
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


def address_of(options: Options) -> str:
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
