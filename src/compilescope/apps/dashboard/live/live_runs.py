"""One reader for each run that is watched, begun by its first viewer and ended after its last.

A viewer's place is the number of the last update it got. Some updates are kept for viewers who
fall behind or come back; who is further behind, or comes from before a restart of the server, gets
a snapshot, which replaces all that it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from compilescope.apps.dashboard.live.tail import LiveEntry, NewEntries, RunTail
from compilescope.apps.dashboard.server.streams import Update

POLL_S = 0.3
"""Between two looks at the files of a live run. Chosen: it seems to be at once."""
LINGER_S = 10.0
"""How long a reader stays when nobody looks: a page that is loaded again finds it. Chosen."""
_THREADS = 2
"""That read all live runs. Chosen: the captured programs need the cores."""
KEPT = 200
"""Entries that a viewer who comes late is shown. Chosen: more than people scroll back through; the
report has all."""
_MOST_KEPT = 1 << 20
"""Bytes of updates that are kept for viewers who are behind. Chosen: a bound for memory; who is
further behind begins anew."""
_PATIENCE_S = 2.0
"""What was written before the first viewer came is told at once, unless it takes longer to read.
Chosen: a page should not stay empty."""
_MOST_STOPS = 1000
"""That are remembered. Chosen: a bound for memory."""
_log = logging.getLogger(__name__)


class LiveRun:
    """A run that somebody looks at."""

    def __init__(self, tail: RunTail, pool: ThreadPoolExecutor) -> None:
        self.tail = tail
        self.viewers = 0
        self.over = False
        self.stop_asked: float | None = None
        """When, by the monotonic clock."""
        self._pool = pool
        self._life = os.urandom(4).hex()
        self._number = 0
        self._standing: dict[str, Any] = {}
        self._recent: deque[LiveEntry] = deque(maxlen=KEPT)
        self._updates: deque[Update] = deque()
        self._bytes = 0
        self._snapshot: Update | None = None
        self._news = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._task = asyncio.create_task(self._follow())

    async def updates(self, after: str) -> AsyncIterator[Update]:
        """What a viewer who has got `after` must still be told, until the run is over."""
        await self._caught_up.wait()
        life, number = self._place(after)
        sent = False
        while True:
            news = self._news
            for update in self._since(life, number):
                life, number = self._place(update.id)
                sent = True
                yield update
                if (life, number) != (self._life, self._number):
                    break  # It went on meanwhile, and may have dropped what was next.
            if (life, number) != (self._life, self._number):
                continue
            if self.over:
                if not sent:
                    yield self._updates[-1]
                return
            await news.wait()

    def cancel(self) -> None:
        self._task.cancel()

    async def close(self) -> None:
        self.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def touch(self) -> None:
        """Something else than its files has changed."""
        if not self.over and self._caught_up.is_set():
            self._publish(NewEntries())

    def _place(self, after: str) -> tuple[str, int]:
        life, _, number = after.partition("-")
        known = number.isascii() and number.isdigit() and len(number) < 16
        return (life, int(number)) if known else ("", 0)

    def _since(self, life: str, number: int) -> list[Update]:
        missing = self._number - number
        if life != self._life or not 0 <= missing <= len(self._updates):
            return [self.snapshot()]
        return list(self._updates)[len(self._updates) - missing :]

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        patient_until = loop.time() + _PATIENCE_S
        try:
            while not self.over:
                look = await loop.run_in_executor(self._pool, self.tail.look)
                self._take(look)
                if not look.more or loop.time() > patient_until:
                    self._caught_up.set()
                await asyncio.sleep(0 if look.more else POLL_S)
        except Exception:
            _log.exception("the run in %s can no longer be followed", self.tail.folder)
            self._standing = {}  # It may be what went wrong.
            self._recent.clear()
            self._end("failed", "Something went wrong while following this run.")
        finally:
            self._caught_up.set()

    def _take(self, look: NewEntries) -> None:
        if look.anew:
            self._life, self._number = os.urandom(4).hex(), 0
            self._updates.clear()
            self._recent.clear()
            self._bytes = 0
        self._standing = look.standing or self._standing
        self._recent.extend(look.entries)
        self._snapshot = None
        if look.anew:
            self._wake()
        elif not look.is_empty and self._caught_up.is_set():
            self._publish(look)
        if self.tail.state != "running":
            self._end(self.tail.state, self.tail.ending())

    def _publish(self, look: NewEntries) -> None:
        data = {
            **self._now(),
            "entries": [_plain(entry) for entry in look.entries],
            "skipped": dict(look.skipped),
        }
        self._append("update", data)

    def _end(self, state: str, words: str) -> None:
        self.over = True
        self._append("end", {**self._now(), "state": state, "words": words})

    def _append(self, kind: str, data: dict[str, Any]) -> None:
        self._number += 1
        self._snapshot = None
        update = Update(f"{self._life}-{self._number}", kind, data)
        self._updates.append(update)
        self._bytes += len(update.encoded)
        while self._bytes > _MOST_KEPT and len(self._updates) > 1:
            self._bytes -= len(self._updates.popleft().encoded)
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def snapshot(self) -> Update:
        """All that there is to see now."""
        if self._snapshot is None:
            entries = [_plain(entry) for entry in self._recent]
            data = {**self._now(), "entries": entries, "skipped": {}}
            number = self._number - 1 if self.over else self._number
            self._snapshot = Update(f"{self._life}-{number}", "snapshot", data)
        return self._snapshot

    def _now(self) -> dict[str, Any]:
        """What every update says."""
        asked = None if self.stop_asked is None else time.monotonic() - self.stop_asked
        return {**self._standing, "elapsed": round(self.tail.elapsed, 3), "stop_asked": asked}


def _plain(entry: LiveEntry) -> list[str]:
    return [entry.key, entry.kind, entry.html]


class LiveRuns:
    """All runs that somebody watches, with one reader each."""

    def __init__(self, *, linger: float = LINGER_S) -> None:
        self._linger = linger
        self._watched: dict[str, LiveRun] = {}
        self._stops: dict[str, float] = {}
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="live")

    @property
    def watched(self) -> dict[str, LiveRun]:
        return self._watched

    async def updates(self, folder: Path, after: str) -> AsyncIterator[Update]:
        """For one viewer."""
        watched = self._enter(folder)
        try:
            async for update in watched.updates(after):
                yield update
        finally:
            self._leave(folder.name, watched)

    def stop_asked(self, run: str) -> float | None:
        """How many seconds ago somebody asked it to stop."""
        at = self._stops.get(run)
        return None if at is None else time.monotonic() - at

    def note_stop(self, run: str) -> None:
        """Every viewer is told."""
        self._stops.setdefault(run, time.monotonic())
        while len(self._stops) > _MOST_STOPS:
            del self._stops[next(iter(self._stops))]
        watched = self._watched.get(run)
        if watched is not None:
            watched.stop_asked = self._stops[run]
            watched.touch()

    async def close(self) -> None:
        for watched in list(self._watched.values()):
            await watched.close()
        self._watched.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _enter(self, folder: Path) -> LiveRun:
        watched = self._watched.get(folder.name)
        if watched is None or (watched.over and watched.tail.state == "gone"):
            watched = LiveRun(RunTail(folder), self._pool)
            watched.stop_asked = self._stops.get(folder.name)
            self._watched[folder.name] = watched
        watched.viewers += 1
        return watched

    def _leave(self, run: str, watched: LiveRun) -> None:
        watched.viewers -= 1
        if not watched.viewers:
            asyncio.get_running_loop().call_later(self._linger, self._drop, run, watched)

    def _drop(self, run: str, watched: LiveRun) -> None:
        if watched.viewers:
            return
        if self._watched.get(run) is watched:
            del self._watched[run]
            if watched.over:
                self._stops.pop(run, None)
        watched.cancel()
