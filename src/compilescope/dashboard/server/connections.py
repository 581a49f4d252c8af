"""A connection whose other side never reads, or never says what it wants, is dropped.

What is written to it waits in memory and holds its socket, also after the answer is complete: to
close such a connection is to wait for its reader. And where there are more connections than files
may be open, whoever has waited longest without asking for anything makes room.
"""

from __future__ import annotations

import asyncio
import contextlib

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

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
