"""Serves the dashboard until it is told to stop."""

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

import uvicorn

from compilescope.dashboard.server.app import make_app
from compilescope.dashboard.server.connections import read_within
from compilescope.dashboard.server.options import Options
from compilescope.errors import ToolError

_BACKLOG = 128
"""Chosen."""
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
