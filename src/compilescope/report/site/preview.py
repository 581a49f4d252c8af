"""A preview of the site on this machine: served from a folder, built anew when a source changes.

Browsers of this machine alone are served; what is answered at all, `local_requests` says. A
connection that says nothing, or reads nothing, is dropped, and there are never more than a few:
each has a thread.
"""

from __future__ import annotations

import functools
import http.server
import io
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

from compilescope.base.errors import ToolError
from compilescope.base.local_requests import (
    ANSWER_HEADERS,
    LOOPBACK_NAMES,
    MOST_ADDRESS_BYTES,
    MOST_HEADER_BYTES,
    SAFE_METHODS,
    STALLED_S,
    TOO_LONG_HEADERS,
    LocalRequest,
    Refusal,
    is_own_name,
    refusal,
    refused_reading,
)
from compilescope.knowledge.registry import cases, history, notes, taxonomy
from compilescope.knowledge.registry.downloads import current_file
from compilescope.knowledge.registry.torch_copy import read_table
from compilescope.report.site.build import BuiltSite, build_site
from compilescope.report.site.content import SiteSources
from compilescope.report.site.pages import ASSETS, TEMPLATES

MOST_CONNECTIONS = 64
"""Chosen: a browser opens a handful, and each takes a thread here."""
_ADDRESS = "127.0.0.1"
_MOST_BYTES = 2 * (MOST_ADDRESS_BYTES + MOST_HEADER_BYTES)
"""Of a request, of which nothing but its head is read."""


class FileServer(http.server.ThreadingHTTPServer):
    """Raises OSError where the port cannot be had; 0 is any that is free."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(
        self,
        folder: Path,
        port: int,
        *,
        most: int = MOST_CONNECTIONS,
        longest_s: float = STALLED_S,
    ) -> None:
        """`longest_s` is from the first byte of a request to the last of its answer, which is a
        small file."""
        self._most = most
        self._longest_s = longest_s
        self._begun: dict[socket.socket, float] = {}
        """The open connections, oldest first."""
        self._lock = threading.Lock()
        super().__init__((_ADDRESS, port), functools.partial(_Handler, directory=str(folder)))

    def answers_to(self, host: str) -> bool:
        return is_own_name(host, LOOPBACK_NAMES, self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            while len(self._begun) >= self._most:
                self._drop(next(iter(self._begun)))
            self._begun[request] = time.monotonic()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Called by `serve_forever` several times a second."""
        late = time.monotonic() - self._longest_s
        with self._lock:
            for request in [each for each, begun in self._begun.items() if begun < late]:
                self._drop(request)

    def _drop(self, request: socket.socket) -> None:
        """Its thread wakes up to a connection that has ended, and closes it."""
        del self._begun[request]
        try:
            request.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A browser that left, or was dropped; anything else is a bug and keeps its traceback.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files only: no listing of folders, and nothing is kept by the browser."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".css": "text/css",
        ".svg": "image/svg+xml",
        ".json": "application/json",
    }
    server: FileServer
    server_version, sys_version = "compilescope", ""

    def setup(self) -> None:
        super().setup()
        self.rfile = self._head = _Head(self.rfile)

    def parse_request(self) -> bool:
        """The first to see a request."""
        if not super().parse_request():
            return False
        found = TOO_LONG_HEADERS if self._head.is_cut else self._refusal()
        if found is not None:
            self._refuse(found)
        return found is None

    def _refusal(self) -> Refusal | None:
        headers = tuple((name.lower(), value) for name, value in self.headers.items())
        path = unquote(self.path.partition("?")[0], errors="replace")
        request = LocalRequest(self.command, self.path.encode("latin-1"), path, headers)
        found = refusal(request, self.server.answers_to)
        if found is None and request.method not in SAFE_METHODS:
            return Refusal(405, "This address does not answer to that method.\n")
        return found or refused_reading(request, [f"http://{request.host}"])

    def _refuse(self, found: Refusal) -> None:
        body = found.words.encode()
        self.send_response(found.status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True

    def send_head(self) -> Any:
        try:
            return self._file()
        except (OSError, ValueError):  # No file can have such a name.
            self.send_error(404)
            return None

    def _file(self) -> BinaryIO | None:
        found: BinaryIO | None = super().send_head()
        return found

    def list_directory(self, path: str | os.PathLike[str]) -> None:
        self.send_error(404)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        for name, value in ANSWER_HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads a line for each picture."""


class _Head(io.BufferedIOBase):
    """What a client sends, up to the longest that a request may be."""

    def __init__(self, sent: io.BufferedIOBase) -> None:
        self._sent = sent
        self._left = _MOST_BYTES

    @property
    def is_cut(self) -> bool:
        return self._left <= 0

    def readline(self, size: int | None = -1, /) -> bytes:
        most = self._left if size is None or size < 0 else min(size, self._left)
        line = self._sent.readline(most)
        self._left -= len(line)
        return line

    def close(self) -> None:
        self._sent.close()
        super().close()


_PAUSE_S = 0.5
"""Between two looks at the sources. Chosen: a saved file is seen at once."""
_REGISTRY = Path(notes.__file__).parent
_WATCHED = (".py", ".md", ".txt", ".toml", ".json", ".html", ".css", ".js", ".svg")
Stamp = dict[str, tuple[int, int]]


@contextmanager
def preview(
    folder: Path, sources: SiteSources, port: int, told: Callable[[BuiltSite | ToolError], None]
) -> Iterator[str]:
    """Build, then serve until the block ends; gives the address. `told` hears of each build."""
    # Taken before the build: a change that comes while it is built, or before the watcher's thread
    # has begun, is a change.
    before = stamp_of(sources)
    told(build_site(folder, sources))
    try:
        server = FileServer(folder, port)
    except OSError as error:
        raise ToolError(
            f"Cannot use port {port}: {error.strerror}.",
            "Choose another with --port; 0 picks a free one.",
        ) from None
    ended = threading.Event()
    watched = (folder, sources, told, ended, before)
    watcher = threading.Thread(target=_watch, args=watched, daemon=True)
    answering = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    answering.daemon = True
    try:
        watcher.start()
        answering.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        watcher.join()
        answering.join()


def _watch(
    folder: Path,
    sources: SiteSources,
    told: Callable[[BuiltSite | ToolError], None],
    ended: threading.Event,
    before: Stamp,
) -> None:
    while not ended.wait(_PAUSE_S):
        now = stamp_of(sources)
        if now == before:
            continue
        before = now
        for load in (
            cases.load_unreachable,
            history.load_history,
            taxonomy.load_symptoms,
            taxonomy.load_taxonomy,
        ):
            load.cache_clear()
        try:
            told(build_site(folder, sources))
        except ToolError as error:
            # A file that is being written: what is served stays as it was.
            told(error)


def stamp_of(sources: SiteSources) -> Stamp:
    """When each file that the site is made from was changed, and how long it is."""
    folders = [_REGISTRY, TEMPLATES, ASSETS, sources.notes, sources.examples]
    files = [_table_file(sources.table), sources.history]
    found: Stamp = {}
    for place in (*folders, *files):
        if place is None:
            continue
        for path in sorted(place.rglob("*")) if place.is_dir() and place in folders else [place]:
            if path.suffix in _WATCHED or path in files:
                try:
                    status = path.stat()
                except OSError:
                    continue
                found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found


@functools.lru_cache(maxsize=8)
def _table_file(table: Path | None) -> Path | None:
    """The file to watch: a wheel or a table as it is, in a folder or an installation the table."""
    if table is not None and not table.is_dir():
        return table
    try:
        return Path(read_table(table).path) if table else current_file()
    except ToolError:
        return None
