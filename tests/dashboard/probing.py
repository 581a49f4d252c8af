"""A page whose handlers note that they were reached, and requests as no library would send them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

import compilescope.apps.dashboard.server.app as app
from compilescope.apps.dashboard.server.page import Address, DashboardPage
from dashboard_server import TOKEN, Served, serving


@dataclass
class Probe:
    """What got through."""

    served: Served
    reached: list[str] = field(default_factory=list)

    def ask(
        self, method: str = "GET", path: str = "/probe/open", token: bool = True, **headers: str
    ) -> int:
        """The status of the answer to a request with just these headers, Host aside; names with
        `_` for `-`."""
        given = {"host": f"127.0.0.1:{self.served.options.port}"}
        if token:
            given["cookie"] = self.cookie
        given.update((name.replace("_", "-"), value) for name, value in headers.items())
        lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in given.items() if v)]
        if method == "POST" and "content-length" not in given and "transfer-encoding" not in given:
            lines.append("content-length: 0")
        return status_of(self.say("\r\n".join([*lines, "connection: close", "", ""]).encode()))

    def say(self, data: bytes) -> bytes:
        """The answer to these bytes, until the server closes."""
        with socket.create_connection(("127.0.0.1", self.served.options.port), 60) as opened:
            opened.sendall(data)
            answer = b""
            try:
                while part := opened.recv(65536):
                    answer += part
            except ConnectionResetError:
                pass  # What it did not read it need not have wanted.
            return answer

    @property
    def cookie(self) -> str:
        return f"compilescope-{self.served.options.port}={TOKEN}"

    @property
    def origin(self) -> str:
        return self.served.base


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer.split(b" ", 2)[1])


@contextmanager
def probing(home: Path, **options: Any) -> Iterator[Probe]:
    """A dashboard with addresses of every kind below /probe."""
    reached: list[str] = []

    async def note(request: Request) -> Response:
        if request.method == "POST":
            await request.form()
        reached.append(f"{request.method} {request.url.path}")
        if request.url.path == "/probe/bug":
            raise ZeroDivisionError("a bug of ours")
        return PlainTextResponse("the secret")

    page = DashboardPage(
        "probe",
        990,
        (
            Address("/probe/open", note, open=True),
            Address("/probe/guarded", note),
            Address("/probe/bug", note, open=True),
            Address("/probe/act", note, method="POST", most_bytes=1000),
        ),
    )
    with pytest.MonkeyPatch.context() as patch:
        before = app.all_pages()
        patch.setattr(app, "all_pages", lambda: [*before, page])
        with serving(home, **options) as served:
            yield Probe(served, reached)
