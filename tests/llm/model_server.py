"""A server on loopback that speaks as a language model does, well or badly."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-secret-0123456789"
WORD = b'data: {"choices": [{"index": 0, "delta": {"content": "w "}}]}\n\n'


class Handler(BaseHTTPRequestHandler):
    """Answers each request by the next behaviour; the last one stays."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, json.loads(body)))
        self.server.bodies.append(body)
        behaviours = self.server.behaviours
        behave = behaviours.pop(0) if len(behaviours) > 1 else behaviours[0]
        try:
            behave(self)
        except OSError:
            self.server.hung_up.set()

    def start(self, kind: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, value: object) -> None:
        self.chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def piece(self, text: object, finish: str | None = None) -> None:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
        self.event({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})

    def done(self) -> None:
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")

    def log_message(self, *_: object) -> None:
        pass


Behaviour = Callable[[Handler], None]


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviours: list[Behaviour] = [saying("Because of `item`.")]
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.bodies: list[bytes] = []
        self.hung_up = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Clients that hang up are what many tests are about; anything else is a bug in a test.
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


def saying(*pieces: object, finish: str | None = "stop") -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.start()
        handler.event({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
        for piece in pieces:
            handler.piece(piece)
        if finish:
            handler.piece(None, finish)
        handler.event({"choices": [], "usage": {"total_tokens": 3}})
        handler.done()

    return behave


def refusing(status: int, body: object = None, **headers: str) -> Behaviour:
    def behave(handler: Handler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return behave


def dripping(piece: bytes, start: bool = True) -> Behaviour:
    """Something comes again and again, each time well within a read's timeout."""

    def behave(handler: Handler) -> None:
        if start:
            handler.start()
        else:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(2400):
            if start:
                handler.chunk(piece)
            else:
                handler.wfile.write(piece)
            time.sleep(0.05)

    return behave


def cutting(handler: Handler) -> None:
    handler.start()
    handler.piece("Because")
    handler.wfile.write(b"ff\r\ndata: {")
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def ending_early(handler: Handler) -> None:
    """A server that closes properly in mid-sentence: only the missing finish tells."""
    handler.start()
    handler.piece("Because")
    handler.chunk(b"")


def raw(*chunks: bytes, kind: str = "text/event-stream") -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.start(kind)
        for chunk in chunks:
            handler.chunk(chunk)
        handler.chunk(b"")

    return behave


def failing_midway(handler: Handler) -> None:
    handler.start()
    handler.piece("Because")
    handler.event({"error": {"message": f"engine died, key {KEY}", "code": 500}})
    handler.done()
