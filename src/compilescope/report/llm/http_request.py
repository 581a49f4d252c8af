"""One request to a server of language models, and the lines of its answer as they come.

Plain HTTP with nothing but Python's own library, so that exactly the bytes that were shown are
sent: no header of a client's, no redirect that takes the question elsewhere.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import queue
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from compilescope.report.llm.server import is_this_machine

# Chosen: bounds for a server that sends without end, far above an answer of the longest length.
MAX_LINE_BYTES = 1 << 20
MAX_ANSWER_BYTES = 16 << 20
_MAX_REFUSAL_BYTES = 64 << 10
_CONNECT_S = 10.0
"""Chosen: whether a server is there shows soon; the answer itself has the user's limit."""
_END = object()


class ModelRequest(NamedTuple):
    """What is sent. The key is no part of it: it is named, not shown, by whoever prints this."""

    url: str
    headers: dict[str, str]
    body: bytes


class ServerRefused(Exception):
    """The server answered with another status than 200."""

    def __init__(self, status: int, headers: http.client.HTTPMessage, body: bytes) -> None:
        super().__init__(status)
        self.status, self.headers, self.body = status, headers, body


class TooLong(Exception):
    """The server sends more than any answer needs."""


def answer_lines(
    request: ModelRequest, key: str | None, deadline: float
) -> Generator[bytes, None, None]:
    """The lines of the answer; nothing is waited for past the deadline (TimeoutError)."""
    posting = _Posting(request, key, deadline - time.monotonic())
    posting.start()
    try:
        while True:
            try:
                news = posting.news.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError from None
            if isinstance(news, Exception):
                raise news
            if news is _END:
                return
            if time.monotonic() > deadline:
                raise TimeoutError
            yield news
    finally:
        posting.dismiss()


class _Posting(threading.Thread):
    """Talks to the server on a thread of its own.

    A socket's timeout is per read, and looking up a name has none at all; only somebody who waits
    outside can promise an end to a server that drips.
    """

    def __init__(self, request: ModelRequest, key: str | None, timeout_s: float) -> None:
        super().__init__(name="compilescope-llm", daemon=True)
        self.news: queue.SimpleQueue[Any] = queue.SimpleQueue()
        """Lines of the answer, then `_END` or the exception that ended it."""
        self._request, self._key, self._timeout_s = request, key, max(timeout_s, 0.001)
        self._connection: http.client.HTTPConnection | None = None
        self._unwanted = threading.Event()

    def run(self) -> None:
        # A border: whatever goes wrong becomes a sentence in the thread that waits.
        try:
            self._talk()
            self.news.put(_END)
        except Exception as error:
            self.news.put(error)
        finally:
            if self._connection is not None:
                self._connection.close()

    def _talk(self) -> None:
        headers = dict(self._request.headers)
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        parts = urlsplit(self._request.url)
        connection, target = _route(parts, min(self._timeout_s, _CONNECT_S), headers)
        self._connection = connection
        connection.connect()
        if self._unwanted.is_set():
            return
        connection.sock.settimeout(self._timeout_s)
        connection.request("POST", target, self._request.body, headers)
        answer = connection.getresponse()
        if answer.status != 200:
            raise ServerRefused(answer.status, answer.headers, answer.read(_MAX_REFUSAL_BYTES))
        for line in _lines(answer):
            if self._unwanted.is_set():
                return
            self.news.put(line)

    def dismiss(self) -> None:
        """Nobody listens any more: hang up."""
        self._unwanted.set()
        sock = self._connection.sock if self._connection is not None else None
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    total = 0
    while line := answer.readline(MAX_LINE_BYTES + 1):
        total += len(line)
        if len(line) > MAX_LINE_BYTES or total > MAX_ANSWER_BYTES:
            raise TooLong
        yield line


def _route(
    parts: SplitResult, timeout_s: float, headers: dict[str, str]
) -> tuple[http.client.HTTPConnection, str]:
    """The connection, and what to ask for on it: directly, or by the proxy of the environment."""
    host, secure = parts.hostname or "", parts.scheme == "https"
    path = parts.path or "/"
    proxy = urllib.request.getproxies().get(parts.scheme, "")
    # A proxy is another machine: what is meant for this one, a key with it, is not shown to it.
    if not proxy or is_this_machine(parts.geturl()) or urllib.request.proxy_bypass(parts.netloc):
        return _connection(host, parts.port, secure, timeout_s), path
    via = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    login = {}
    if via.username is not None:
        name = f"{unquote(via.username)}:{unquote(via.password or '')}"
        login["Proxy-Authorization"] = f"Basic {base64.b64encode(name.encode()).decode()}"
    connection = _connection(via.hostname or "", via.port, secure, timeout_s)
    if secure:
        connection.set_tunnel(host, parts.port, login)
        return connection, path
    headers.update(login)
    return connection, parts.geturl()


def _connection(
    host: str, port: int | None, secure: bool, timeout_s: float
) -> http.client.HTTPConnection:
    if not secure:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    context = ssl.create_default_context()
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
