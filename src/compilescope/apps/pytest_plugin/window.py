"""What one test does: the events from the setup of its fixtures to the end of its call.

Where the whole session is recorded the window reads along; elsewhere it records by itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec

from compilescope.apps.front import Capture
from compilescope.instrument.recorder.journal import Journal, MemoryJournal
from compilescope.instrument.recorder.session import recording
from compilescope.record.artifacts import Artifacts
from compilescope.record.bodies import ProcessEnded, ProcessStarted
from compilescope.record.event import Event
from compilescope.record.header import RunHeader
from compilescope.record.run import Run, is_standing


class SharedJournal:
    """A journal that others may follow."""

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._standing: list[Event] = []
        self._followers: dict[int, list[Event]] = {}
        self.artifacts: Artifacts = inner.artifacts

    def open(self, rank: int) -> str:
        return self._inner.open(rank)

    def append(self, event: Event, more: bool = False) -> None:
        self._inner.append(event, more)
        if is_standing(event):
            self._standing.append(event)
        for events in tuple(self._followers.values()):
            events.append(event)

    @property
    def lost(self) -> int:
        return self._inner.lost

    def close(self) -> None:
        self._inner.close()

    @contextmanager
    def followed(self, events: list[Event]) -> Iterator[None]:
        """What is appended within the block goes to `events` too, after what holds throughout."""
        lost = self.lost
        events.extend(self._standing)
        self._followers[id(events)] = events
        try:
            yield
        finally:
            del self._followers[id(events)]
            started = [event for event in events if isinstance(event.body, ProcessStarted)]
            if started:
                # The process goes on, but this is all that the follower wanted to see of it.
                events.append(
                    msgspec.structs.replace(
                        started[-1],
                        id=f"{started[-1].id}-end",
                        time_ns=time.time_ns(),
                        body=ProcessEnded(self.lost - lost),
                    )
                )


class Window:
    """A look at the events of one test."""

    def __init__(
        self, header: RunHeader, journal: SharedJournal | None = None, *, time: bool = False
    ) -> None:
        self._header = header
        self._close = ExitStack()
        self._open = True
        # Only a recording of our own has the clocks on.
        if journal is not None and not time:
            self._events: list[Event] = []
            self._artifacts = journal.artifacts
            self._close.enter_context(journal.followed(self._events))
        else:
            memory = MemoryJournal()
            self._events, self._artifacts = memory.events, memory.artifacts
            self._close.enter_context(recording(memory, time=time))
        self.capture = Capture(self.run)

    def run(self) -> Run:
        return Run(self._header, list(self._events), self._artifacts, live=self._open)

    def close(self) -> None:
        self._close.close()
        self._open = False
