"""Streams: a limit, resuming, viewers who go away or never read, a server that stops."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from compilescope.apps.dashboard.server import app as real_serving
from compilescope.apps.dashboard.server.app import ReadConnection, make_app
from compilescope.apps.dashboard.server.options import BrowserLimits, Options
from compilescope.apps.dashboard.server.streams import Update, resume_id, resume_offset, stream
from dashboard_server import Served, serving
from live_runs import updates
from waiting import until

_BIG = "x" * 50_000


class Source:
    """Streams for tests, beside the pages of the dashboard."""

    def __init__(self) -> None:
        self.running = 0
        self.sent = 0

    async def numbers(self, begin: int, upto: int | None, data: str = "") -> AsyncIterator[Update]:
        self.running += 1
        try:
            at = begin
            while upto is None or at < upto:
                at += 1
                self.sent += 1
                yield Update(str(at), "number", [at, data])
            await asyncio.sleep(3600)
        finally:
            self.running -= 1

    def routes(self) -> list[Route]:
        async def few(request: Request) -> Response:
            return stream(request, self.numbers(resume_offset(request), 3))

        async def flood(request: Request) -> Response:
            return stream(request, self.numbers(0, None, _BIG))

        async def named(request: Request) -> Response:
            return Response(resume_id(request))

        return [Route("/few", few), Route("/flood", flood), Route("/named", named)]


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture(params=[BrowserLimits(viewers=3)], ids=[""])
def streaming(
    tmp_path: Path,
    source: Source,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Served]:
    def with_streams(options: Options) -> Any:
        app = make_app(options)
        app.router.routes.extend(source.routes())
        return app

    monkeypatch.setattr(real_serving, "make_app", with_streams)
    # In order: whoever is cut off after a second was not, on a busy machine.
    with serving(tmp_path, last_words_s=60, limits=request.param) as served:
        yield served


def test_each_update_has_an_id_and_the_browser_is_told_when_to_come_back(streaming: Served) -> None:
    with streaming.client.stream("GET", "/few") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert [next(lines) for _ in range(2)] == [": compilescope", "retry: 2000"]
        found = updates(lines)
        assert [next(found) for _ in range(3)] == [(str(n), "number", [n, ""]) for n in (1, 2, 3)]


@pytest.mark.parametrize("how", ["header", "query"])
def test_it_resumes_after_the_last_id(streaming: Served, how: str) -> None:
    given = {"headers": {"last-event-id": "2"}} if how == "header" else {"params": {"after": "2"}}
    with streaming.client.stream("GET", "/few", **given) as answer:
        assert next(updates(answer.iter_lines()))[0] == "3"


def test_the_header_is_newer_than_the_address(streaming: Served) -> None:
    given = {"headers": {"last-event-id": "2"}, "params": {"after": "1"}}
    with streaming.client.stream("GET", "/few", **given) as answer:
        assert next(updates(answer.iter_lines()))[0] == "3"


@pytest.mark.parametrize("given", ["x" * 201, "<b>", "-1", "1e3", "9" * 16, "²"])
def test_an_id_that_is_none_is_refused(streaming: Served, given: str) -> None:
    answer = streaming.client.get("/few", params={"after": given})
    assert answer.status_code == 400
    assert "resume from" in answer.text


def test_any_id_of_ours_is_read(streaming: Served) -> None:
    assert streaming.client.get("/named", params={"after": "a1-b.2:3"}).text == "a1-b.2:3"


def test_beyond_the_limit_the_answer_says_so(streaming: Served, source: Source) -> None:
    opened = [streaming.client.stream("GET", "/few") for _ in range(3)]
    reading = [updates(one.__enter__().iter_lines()) for one in opened]
    for one in reading:
        next(one)
    refused = streaming.client.get("/few", headers={"accept": "application/json"})
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "30"
    assert "3 live views are open" in refused.json()["error"]
    opened[0].__exit__(None, None, None)
    until(lambda: source.running == 2)
    until(lambda: streaming_open(streaming) == 2)
    with streaming.client.stream("GET", "/few") as answer:
        assert answer.status_code == 200
    for view in opened[1:]:
        view.__exit__(None, None, None)
    until(lambda: source.running == 0)


def streaming_open(served: Served) -> int:
    return int(served.server.config.app.state.dashboard.streams.open)


def test_only_headers_asked_for_takes_no_place(streaming: Served, source: Source) -> None:
    assert streaming.client.head("/few").status_code == 200
    until(lambda: streaming_open(streaming) == 0)
    assert source.sent == 0


@pytest.mark.parametrize("streaming", [BrowserLimits(stalled_s=0.2)], indirect=True, ids=[""])
def test_a_viewer_who_never_reads_is_dropped(streaming: Served, source: Source) -> None:
    with contextlib.ExitStack() as stack:
        while not source.sent:
            # On a busy machine we may be dropped before we have asked.
            reader = stack.enter_context(socket.socket())
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", streaming.options.port))
            host = f"127.0.0.1:{streaming.options.port}"
            with contextlib.suppress(ConnectionError):
                reader.sendall(f"GET /flood HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
                reader.recv(1, socket.MSG_PEEK)  # Until there is an answer; it stays unread.
        until(lambda: source.running == 0)
        # What the kernel takes for a reader that may come, and one message above the mark.
        assert source.sent < 200
        until(lambda: not streaming.server.server_state.connections)
        until(lambda: streaming_open(streaming) == 0)


class Later:
    """A loop whose time passes when the test says so."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Any]] = []

    def call_later(self, seconds: float, call: Any, *given: Any) -> Any:
        self.due.append((seconds, lambda: call(*given)))
        return asyncio.TimerHandle(0, call, given, asyncio.new_event_loop())

    def pass_by(self, seconds: float) -> None:
        (after, call), self.due = self.due[0], self.due[1:]
        assert after == seconds
        call()


class Sending:
    """A transport, as far as what waits to be sent goes."""

    waiting, aborted = 100, False

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def abort(self) -> None:
        self.aborted = True


def test_who_reads_a_little_each_time_is_not_dropped(tmp_path: Path) -> None:
    """However long that goes on; who took nothing since the last look is."""
    config = uvicorn.Config(make_app(Options(home=tmp_path, token="x")), log_config=None)
    config.load()
    later, sending = Later(), Sending()
    reader = ReadConnection(config, uvicorn.server.ServerState(), {}, later)  # type: ignore[arg-type]
    reader.transport = sending  # type: ignore[assignment]
    reader._look_again()
    for left in range(99, 0, -1):
        sending.waiting = left
        later.pass_by(ReadConnection.stalled_s)
        assert not sending.aborted
    later.pass_by(ReadConnection.stalled_s)
    assert sending.aborted and not later.due


def test_the_end_of_the_server_ends_streams(source: Source, streaming: Served) -> None:
    ended = threading.Event()

    def read() -> None:
        with httpx.stream("GET", f"{streaming.base}/few", timeout=600) as answer:
            for _ in answer.iter_lines():
                pass
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    until(lambda: source.running == 1)
    streaming.server.should_exit = True
    assert ended.wait(600), "the stream was not closed in order"
    until(lambda: source.running == 0)
