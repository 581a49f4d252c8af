"""How the index has runs read: by a process that is started when there is work, and ended when
there is none; what it read is kept on disk, for a server that starts again.

A thread asks it for one run after the other, newest first, while there are any to read.

It is a cache and no more. One that is damaged or of another version is made anew, and a folder that
cannot be written has none.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from compilescope.apps.dashboard.runs.entry import RunEntry
from compilescope.apps.dashboard.runs.reader import KnownRun, ReadRequest
from compilescope.base.errors import ToolError
from compilescope.base.processes.deadline import clock
from compilescope.base.processes.worker import Worker
from compilescope.base.version import VERSION

LONGEST_S = 120.0
"""That a few runs may take. Chosen: it ends what hangs."""
_LAST_S = 2.0
"""For it to end by itself. Chosen: then it is killed."""

_decoder = msgspec.json.Decoder(str | RunEntry | None)


class FailedRead(msgspec.Struct, frozen=True):
    """The process ended, or was ended, while it read this run."""

    name: str
    """Empty: it did not even begin."""
    reason: str


class ReaderClient:
    """Used by one thread."""

    def __init__(self, home: Path, longest_s: float) -> None:
        self._home = home
        self._longest_s = longest_s
        self._worker: Worker | None = None

    def read(self, runs: Sequence[KnownRun]) -> Iterator[RunEntry | FailedRead]:
        """Entries of those that differ from what is known."""
        try:
            worker = self._started()
        except ToolError as error:
            yield FailedRead("", error.message)
            return
        worker.send(msgspec.json.encode(ReadRequest(str(self._home), tuple(runs))))
        until, at = clock() + self._longest_s, ""
        while said := worker.hear(until - clock()):
            answer = _decoder.decode(said)
            if answer is None:
                return
            if isinstance(answer, str):
                at = answer
            else:
                yield answer
        late = f"reading it took more than {self._longest_s:.0f} s"
        why = late if said is None else "reading it failed"
        worker.end()
        yield FailedRead(at, f"Its figures can't be computed: {why}.")

    def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end(_LAST_S)

    def stop(self) -> None:
        """From another thread: whoever waits for an answer gets none."""
        worker = self._worker
        if worker is not None:
            worker.kill()

    def _started(self) -> Worker:
        if self._worker is None or not self._worker.is_running:
            self.close()
            command = [sys.executable, "-m", "compilescope.apps.dashboard.runs.reader"]
            # What goes wrong in it, whoever started the server sees.
            self._worker = Worker(command, stdout=subprocess.DEVNULL, stderr=None)
        return self._worker


_AT_ONCE = 16
"""Runs that the process is asked for at a time. Chosen: few, since runs that come meanwhile are
newer and should be next."""
_IDLE_S = 10.0
"""After which thread and process end. Chosen: several requests in a row share one process."""


class Index(Protocol):
    """What the thread needs of the index."""

    home: Path
    cache: Cache
    longest_s: float

    def known(self, names: Iterable[str]) -> list[KnownRun]: ...
    def newest(self, names: Iterable[str], most: int) -> list[str]: ...
    def found(self, entry: RunEntry, took: float) -> RunEntry | None: ...
    def failed(self, failed: FailedRead, took: float) -> RunEntry | None: ...


class ReadingThread:
    """The thread that has runs read, while there are any to read."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._reading: ReaderClient | None = None
        self._changed = threading.Condition()
        self._wanted: set[str] = set()
        self._gone: set[str] = set()
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, names: Iterable[str]) -> None:
        with self._changed:
            self._wanted.update(names)
            self._go()

    def forget(self, names: Iterable[str]) -> None:
        with self._changed:
            self._gone.update(names)
            self._wanted.difference_update(names)
            if self._gone:
                self._go()

    def _go(self) -> None:
        if self._closed:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="runs", daemon=True)
            self._thread.start()
        self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if self._reading is not None:
            self._reading.stop()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        reading = self._reading = ReaderClient(self._index.home, self._index.longest_s)
        try:
            while self._work_on(reading):
                pass
        finally:
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None  # Whoever asks next starts another.
            reading.close()

    def _work_on(self, reading: ReaderClient) -> bool:
        """False: there is nothing to do any more."""
        with self._changed:
            if not self._changed.wait_for(self._has_work, timeout=_IDLE_S) or self._closed:
                self._thread = None
                return False
            gone, self._gone = self._gone, set()
            wanted = list(self._wanted)
        self._index.cache.forget(gone)
        self._read(reading, wanted)
        return True

    def _has_work(self) -> bool:
        return self._closed or bool(self._wanted or self._gone)

    def _read(self, reading: ReaderClient, wanted: list[str]) -> None:
        chosen = self._index.newest(wanted, _AT_ONCE)
        with self._changed:
            # Where none is chosen they are folders that are no runs, or gone.
            self._wanted.difference_update(chosen or wanted)
        if not chosen:
            return
        kept = []
        started = time.monotonic()
        for answer in reading.read(self._index.known(chosen)):
            took = time.monotonic() - started
            started = time.monotonic()
            if self._closed:
                break
            if not isinstance(answer, FailedRead):
                kept.append(self._index.found(answer, took))
            elif not answer.name:
                self._give_up()
            else:
                # Not kept on disk: whatever ended the process, another may come further.
                self._index.failed(answer, took)
                done = {entry.name for entry in kept if entry is not None}
                self.ask(set(chosen) - done - {answer.name})
        self._index.cache.store(entry for entry in kept if entry is not None)

    def _give_up(self) -> None:
        """No such process can be started: to try for each run would be no better. The look at
        everything asks for them again."""
        with self._changed:
            self._wanted.clear()


FILE_NAME = ".index.sqlite"
_FORM = f"{VERSION} 3"
"""What rules count, and how it is written, may differ between versions."""
_BUSY_S = 2.0
"""How long another server of the same folder is waited for. Chosen: then the runs are read without
the cache."""

_TABLES = (
    "CREATE TABLE form (form TEXT)",
    "CREATE TABLE entries (name TEXT PRIMARY KEY, data BLOB)",
)

_entry_decoder = msgspec.json.Decoder(RunEntry)
_encoder = msgspec.json.Encoder()


class Cache:
    """Used by one thread at a time."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE_NAME
        self._opened: sqlite3.Connection | None = None

    def load(self) -> list[RunEntry]:
        """What is there; nothing of it is trusted without a look at the folder it is about."""
        if not self._path.is_file():
            return []
        with contextlib.suppress(sqlite3.Error, OSError):
            found = self._read()
            if found is not None:
                return found
        self._start_anew()
        return []

    def _read(self) -> list[RunEntry] | None:
        """None: it is damaged."""
        rows = self._connection().execute("SELECT data FROM entries").fetchall()
        try:
            return [_entry_decoder.decode(data) for (data,) in rows]
        except (msgspec.DecodeError, TypeError):
            return None

    def store(self, entries: Iterable[RunEntry]) -> None:
        rows = [(entry.name, _encoder.encode(entry)) for entry in entries]
        self._change("INSERT OR REPLACE INTO entries VALUES (?, ?)", rows)

    def forget(self, names: Iterable[str]) -> None:
        self._change("DELETE FROM entries WHERE name = ?", [(name,) for name in names])

    def close(self) -> None:
        if self._opened is not None:
            with contextlib.suppress(sqlite3.Error):
                self._opened.close()
            self._opened = None

    def _change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Whatever goes wrong: the entry is in memory, and can be read from its run again."""
        if not rows or not self._path.parent.is_dir():
            return
        try:
            with self._connection() as connection:
                connection.executemany(statement, rows)
        except sqlite3.OperationalError:
            self.close()
        except sqlite3.Error:
            self._start_anew()

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            opened = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False)
            try:
                # Losing the last entries with the machine's power costs a second look, no more.
                opened.execute("PRAGMA synchronous = OFF")
                with opened:
                    _prepare(opened)
            except sqlite3.Error:
                opened.close()
                raise
            self._opened = opened
        return self._opened

    def _start_anew(self) -> None:
        self.close()
        for suffix in ("", "-journal", "-wal", "-shm"):
            with contextlib.suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink()


def _prepare(connection: sqlite3.Connection) -> None:
    made = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    if not made:
        for table in _TABLES:
            connection.execute(table)
    elif {sql for (sql,) in made} != set(_TABLES):
        # Not ours: a view in the place of a table may have rows without end.
        raise sqlite3.DatabaseError("another file than the cache")
    found = connection.execute("SELECT form FROM form").fetchall()
    if found != [(_FORM,)]:
        connection.execute("DELETE FROM entries")
        connection.execute("DELETE FROM form")
        connection.execute("INSERT INTO form VALUES (?)", (_FORM,))
