"""What was read of runs, kept on disk: a server that starts again need not read them again.

It is a cache and no more. One that is damaged or of another version is made anew, and a folder that
cannot be written has none.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from compilescope.dashboard.runs.entry import RunEntry
from compilescope.version import VERSION

FILE_NAME = ".index.sqlite"
_FORM = f"{VERSION} 2"
"""What rules count, and how it is written, may differ between versions."""
_BUSY_S = 2.0
"""How long another server of the same folder is waited for. Chosen: then the runs are read without
the cache."""

_TABLES = (
    "CREATE TABLE form (form TEXT)",
    "CREATE TABLE entries (name TEXT PRIMARY KEY, data BLOB)",
)

_decoder = msgspec.json.Decoder(RunEntry)
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
            return [_decoder.decode(data) for (data,) in rows]
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
