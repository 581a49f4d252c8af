"""Answers that go on: server-sent events, with a limit of viewers, from where a viewer left off.

A browser that lost its connection asks again by itself and names the last id it got
(`Last-Event-ID`), so every update has one that says where to go on from. A viewer who never reads
costs what one connection may buffer, until the connection is dropped (`uvicorn_server`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse, SendTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from compilescope.base.errors import ToolError

RETRY_MS = 2000
"""How long a browser waits before it connects again. Chosen: a server that starts again is not
overrun."""
PING_S = 15.0
"""A comment that often shows proxies, and us, that the other side is there. Chosen: what the
server-sent events standard advises, "every 15 seconds or so"."""
FULL_S = 30
"""How long a viewer for whom there is no room should wait before it asks again. Chosen: a place
becomes free when somebody closes a page."""
_ID = re.compile(r"[0-9A-Za-z._:-]{0,200}")


class Update:
    """One event of a stream. Viewers of one thing can share it: it is encoded once."""

    __slots__ = ("encoded", "id", "kind")

    def __init__(self, id: str, kind: str, data: Any) -> None:
        self.id = id
        """Where to resume from for whoever has got it."""
        self.kind = kind
        """What a script listens for."""
        # Anything that JSON can say. Only this is kept: some are, for who comes back.
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        self.encoded = ServerSentEvent(text, event=kind, id=id, sep="\n").encode()


class Streams:
    """All live answers that are open, up to a limit."""

    def __init__(self, limit: int, send_timeout: float) -> None:
        self.limit = limit
        self.send_timeout = send_timeout
        self.open = 0
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End them all: browsers come back to whoever serves next."""
        self._stopping.set()

    def answer(self, events: AsyncIterator[Update]) -> Response:
        """Takes a place, which the end of the answer frees."""
        if self.open >= self.limit:
            raise HTTPException(
                503,
                f"{self.limit} live views are open already, which is the limit.",
                headers={"retry-after": str(FULL_S)},
            )
        self.open += 1
        return _EventStream(self, _encoded(events, self._stopping))

    def left(self) -> None:
        self.open -= 1


def stream(request: Request, events: AsyncIterator[Update]) -> Response:
    """`events` as server-sent events. The iterator is closed as soon as the viewer is gone."""
    streams = request.app.state.dashboard.streams
    assert isinstance(streams, Streams)
    return streams.answer(events)


def resume_id(request: Request) -> str:
    """The id of the last update that the viewer has; empty: it begins.

    A browser that reconnects by itself sends the header; a script that begins where a page ends
    can only put it into the address.
    """
    given = request.headers.get("last-event-id") or request.query_params.get("after", "")
    if not _ID.fullmatch(given):
        raise ToolError("The id to resume from is not one of this server.")
    return given


def resume_offset(request: Request) -> int:
    """The same where ids are offsets."""
    given = resume_id(request)
    if given and not (given.isascii() and given.isdigit() and len(given) < 16):
        raise ToolError("The id to resume from is not an offset.")
    return int(given or 0)


class _EventStream(EventSourceResponse):
    def __init__(self, streams: Streams, content: AsyncIterator[bytes]) -> None:
        super().__init__(content, ping=PING_S, sep="\n", send_timeout=streams.send_timeout)
        self._streams = streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            pass  # A viewer who does not read: there is nobody to tell.
        finally:
            self._streams.left()


async def _encoded(
    events: AsyncIterator[Update], stopping: asyncio.Event
) -> AsyncGenerator[bytes, None]:
    """Until they or the server end."""
    yield ServerSentEvent(comment="compilescope", retry=RETRY_MS, sep="\n").encode()
    stopped = asyncio.ensure_future(stopping.wait())
    coming: asyncio.Future[Update] | None = None
    try:
        while not stopping.is_set():
            coming = asyncio.ensure_future(_next(events))
            await asyncio.wait({coming, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                return
            try:
                update = coming.result()
            except StopAsyncIteration:
                return
            yield update.encoded
    finally:
        await _ended(stopped, coming)
        if isinstance(events, AsyncGenerator):
            await events.aclose()


async def _next(events: AsyncIterator[Update]) -> Update:
    return await events.__anext__()


async def _ended(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancelled and over: whoever is still at work cannot be closed."""
    waiting = [task for task in tasks if task is not None and not task.done()]
    for task in waiting:
        task.cancel()
    if waiting:
        await asyncio.wait(waiting)
