"""All runs of a folder as rows, newest first, for any page to ask at any time.

Headers and labels are read here, the figures by a process of their own, one run after the other,
newest first. What was read is cached; the folders' own marks say what must be read again.
"""

from __future__ import annotations

import heapq
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from compilescope.apps.dashboard.runs.entry import RunEntry, look, stamp_of
from compilescope.apps.dashboard.runs.reader import KnownRun
from compilescope.apps.dashboard.runs.reader_client import (
    LONGEST_S,
    Cache,
    FailedRead,
    ReadingThread,
)
from compilescope.apps.dashboard.runs.rows import RunRow, make_row
from compilescope.record.header import RunHeader
from compilescope.record.home import is_run_name
from compilescope.record.run import is_live

_TRUST_S = 1.0
"""How long the folders of ended runs are taken to be as they were. Chosen: requests of one page
share a look."""
_CHECK_S = 300.0
"""How often every file of every run is looked at: a file may be edited in its place. Chosen: that
is rare, and looking costs a system call for each file."""
_OPEN_S = 86_400.0
"""How long a run without a launcher, whose end is not told, may still be growing. Chosen: a day."""
# Chosen: reading a live run takes at most a tenth of a core, and a small one is soon fresh.
_LIVE_S = 2.0
_LIVE_SHARE = 10
"""A live run is read again after this many times as long as reading it took."""
_UNPRINTABLE = "Its name contains characters that can't be shown. Rename the folder."


class IndexProgress(NamedTuple):
    """How far the figures are read."""

    read: int
    runs: int


class RunIndex:
    """The runs of one folder. Its methods may be called from any thread."""

    def __init__(self, home: Path, longest_s: float = LONGEST_S) -> None:
        self.home = home
        self.longest_s = longest_s
        self._lock = threading.RLock()
        self.cache = Cache(home)
        self._entries: dict[str, RunEntry] = {}
        self._rows: dict[str, RunRow] = {}
        self._texts: dict[str, str] = {}
        self._listed: list[RunRow] | None = None
        self._growing: dict[str, str] = {}
        """Runs that may be written to, and the stamp that they were last asked for with."""
        self._cost: dict[str, tuple[float, float]] = {}
        """When a growing run was last read, and how long that took."""
        self._loaded = False
        self._scanned = (-1, -1e9)
        """The home folder's mark, and when it was scanned."""
        self._checked = time.monotonic()
        self._reader = ReadingThread(self)

    def rows(self) -> list[RunRow]:
        """Newest first. Whoever gets the list must not change it."""
        with self._lock:
            self._refresh()
            if self._listed is None:
                rows = self._rows.values()
                self._listed = sorted(rows, key=lambda row: (-row.started, row.run))
            return self._listed

    def row(self, run: str) -> RunRow | None:
        with self._lock:
            self._refresh()
            return self._rows.get(run)

    def text(self, run: str) -> str:
        """What a search for a run looks at."""
        with self._lock:
            if run not in self._texts:
                self._texts[run] = self._rows[run].text if run in self._rows else ""
            return self._texts[run]

    def unreadable(self) -> list[tuple[str, str]]:
        """Folders that are no runs, with the reason."""
        with self._lock:
            self._refresh()
            found = self._entries.values()
            return sorted((_shown(each.name), each.reason) for each in found if not each.header)

    def progress(self) -> IndexProgress:
        with self._lock:
            pending = sum(row.pending for row in self._rows.values())
            return IndexProgress(len(self._rows) - pending, len(self._rows))

    def changed(self, run: str) -> None:
        """Somebody just changed its labels, or more: the next answer has it."""
        with self._lock:
            if run in self._entries:
                self._entries[run] = msgspec.structs.replace(self._entries[run], touched=-1)
            self._scanned = (-1, -1e9)

    def close(self) -> None:
        self._reader.close()
        self.cache.close()

    # What follows is called with the lock held.

    def _refresh(self) -> None:
        self._load()
        now = time.monotonic()
        try:
            mark = os.stat(self.home).st_mtime_ns
        except OSError:
            mark = 0
        if mark != self._scanned[0] or now - self._scanned[1] > _TRUST_S:
            self._scan()
            self._scanned = (mark, now)
        for name in list(self._growing):
            self._look_at_growing(name, now)
        if now - self._checked > _CHECK_S:
            self._checked = now
            self._reader.ask(self._entries)

    def _load(self) -> None:
        if self._loaded:
            return
        self._loaded = True
        for entry in self.cache.load():
            self._entries[entry.name] = entry

    def _scan(self) -> None:
        """A look at every folder, and at nothing in those that did not change."""
        seen = set()
        for name, touched in _folders(self.home):
            seen.add(name)
            if not name.isprintable():
                self._entries[name] = RunEntry(name=name, touched=touched, reason=_UNPRINTABLE)
                continue
            known = self._entries.get(name)
            if known is None or known.touched != touched:
                found = look(self.home / name, touched)
                if known is not None and found.header is not None:
                    # The figures are shown until they are read again.
                    found = msgspec.structs.replace(
                        found, stamp=known.stamp, figures=known.figures, problem=known.problem
                    )
                self._take(found)
                self._reader.ask([name])
            elif name not in self._rows and known.header is not None:
                self._take(known)
                if known.header.ended_ns is None:
                    self._reader.ask([name])  # It may have grown while no server ran.
        gone = self._entries.keys() - seen
        for name in gone:
            self._drop(name)
        self._reader.forget(gone)

    def _take(self, entry: RunEntry) -> None:
        self._entries[entry.name] = entry
        self._growing.pop(entry.name, None)
        self._texts.pop(entry.name, None)
        self._listed = None
        if entry.header is None:
            self._rows.pop(entry.name, None)
            return
        live = is_live(entry.header)
        self._rows[entry.name] = make_row(self.home, entry, entry.header, live=live)
        if live or _is_open(entry.header):
            self._growing[entry.name] = ""

    def _drop(self, name: str) -> None:
        for known in (self._entries, self._rows, self._texts, self._growing, self._cost):
            known.pop(name, None)
        self._listed = None

    def _look_at_growing(self, name: str, now: float) -> None:
        entry = self._entries[name]
        asked = self._growing[name]
        self._take(entry)
        if name not in self._growing:
            self._reader.ask([name])  # Its launcher is gone: the last of it.
            return
        self._growing[name] = asked
        read_at, took = self._cost.get(name, (-1e9, 0.0))
        if now - read_at < max(_LIVE_S, _LIVE_SHARE * took):
            return
        try:
            stamp = stamp_of(self.home / name)
        except OSError:
            return
        if stamp not in (entry.stamp, asked):
            self._growing[name] = stamp
            self._reader.ask([name])

    # What follows is called by the thread that reads.

    def known(self, names: Iterable[str]) -> list[KnownRun]:
        with self._lock:
            entries = [self._entries[name] for name in names if name in self._entries]
            return [KnownRun(entry.name, entry.touched, entry.stamp) for entry in entries]

    def newest(self, names: Iterable[str], most: int) -> list[str]:
        with self._lock:
            started = {name: self._rows[name].started for name in names if name in self._rows}
            return heapq.nlargest(most, started, key=started.__getitem__)

    def found(self, entry: RunEntry, took: float) -> RunEntry | None:
        """Take what was read; the entry as it is kept, or None where its folder is gone."""
        with self._lock:
            known = self._entries.get(entry.name)
            if known is None:
                return None
            if entry.header is not None and entry.figures is None and not entry.problem:
                entry = msgspec.structs.replace(entry, figures=known.figures, problem=known.problem)
            self._take(entry)
            self._cost[entry.name] = (time.monotonic(), took)
            return entry

    def failed(self, failed: FailedRead, took: float) -> RunEntry | None:
        try:
            stamp = stamp_of(self.home / failed.name)
        except OSError:
            return None
        with self._lock:
            known = self._entries.get(failed.name)
            if known is None:
                return None
            entry = msgspec.structs.replace(known, stamp=stamp, figures=None, problem=failed.reason)
            return self.found(entry, took)


def _folders(home: Path) -> Iterable[tuple[str, int]]:
    try:
        with os.scandir(home) as found:
            for each in found:
                if is_run_name(each.name) and each.is_dir(follow_symlinks=False):
                    try:
                        yield each.name, each.stat(follow_symlinks=False).st_mtime_ns
                    except OSError:
                        continue  # It was deleted meanwhile.
    except OSError:
        return


def _shown(name: str) -> str:
    """A name of a folder may be any bytes."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _is_open(header: RunHeader) -> bool:
    """May it be written to by a process that has no launcher?"""
    recent = time.time() - header.started_ns / 1e9 < _OPEN_S
    return header.launcher_pid is None and header.ended_ns is None and recent
