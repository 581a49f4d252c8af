"""The event file of one process: JSON lines, appended as things happen.

Each line is one `write` to a file opened for appending, so that a process that is killed leaves
every event it finished. Reading counts the lines it cannot read and never stops at one.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from compilescope.model.event import Event, UnreadableLine, decode
from compilescope.model.plain_files import open_plain

_NAME = re.compile(r"^events-(\d+(?:\.\d+)?)\.jsonl$")


class EventFile:
    """The writing end. Never raises on a full disk: what could not be written is counted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._torn = False
        self.lost = 0

    @staticmethod
    def claim(folder: Path, rank: int) -> tuple[EventFile, str]:
        """A new file in `folder`, and the name of this process within the run."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        try:
            # The first process of a rank is that rank; exclusive creation settles who is first.
            descriptor = os.open(folder / f"events-{rank}.jsonl", flags, 0o644)
            return EventFile(descriptor), str(rank)
        except FileExistsError:
            return EventFile.beside(folder, rank)

    @staticmethod
    def beside(folder: Path, rank: int) -> tuple[EventFile, str]:
        """As `claim`, for a process that must not pass for the rank itself."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        pid = os.getpid()
        name = folder / f"events-{rank}.{pid}.jsonl"
        return EventFile(os.open(name, flags, 0o644)), f"{rank}:{pid}"

    def write(self, line: bytes) -> None:
        with self._lock:
            data = (b"\n" if self._torn else b"") + line + b"\n"
            try:
                done = os.write(self._descriptor, data)
                while done < len(data):
                    self._torn = True
                    done += os.write(self._descriptor, data[done:])
                self._torn = False
            except OSError:
                self.lost += 1

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def event_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if _NAME.match(path.name))


def last_events(path: Path, size: int = 65536) -> list[Event]:
    """What stands in the last `size` bytes of a file, as far as it can be read."""
    with open_plain(path) as file:
        file.seek(0, os.SEEK_END)
        start = max(file.tell() - size, 0)
        file.seek(start)
        lines = file.read().splitlines()
    found: list[Event] = []
    for line in lines[1:] if start else lines:
        with contextlib.suppress(UnreadableLine):
            found.append(decode(line))
    return found


class EventReader:
    """Reads event files one after the other; `unread` counts what was no event."""

    def __init__(self) -> None:
        self.unread = 0
        self.torn_files: list[str] = []
        """Files whose last line has no end: their process was stopped while writing."""

    def read(self, path: Path) -> Iterator[Event]:
        ended = True
        with open_plain(path) as file:
            for line in file:
                ended = line.endswith(b"\n")
                if not line.strip():
                    continue
                try:
                    yield decode(line)
                except UnreadableLine:
                    self.unread += 1
        if not ended:
            self.torn_files.append(path.name)


class EventTail:
    """Reads an event file while it grows: at each look what is new, and never more than `most`.

    Only lines that have ended are read, so the place it has come to is always between two lines.
    It holds no descriptor between looks: a run may have hundreds of files.
    """

    def __init__(self, path: Path, most: int = 8 << 20) -> None:
        self.path = path
        self.place = 0
        """Bytes that were read: up to here all is known."""
        self.unread = 0
        """Lines that are no events."""
        self._most = most
        self._size = 0
        self._file: tuple[int, int] | None = None
        self._skipping = False
        self.has_more = False
        """There was more than one look may read."""

    def read(self) -> list[Event]:
        """What is new. `Replaced` where what was read before is no longer what the file holds;
        OSError where there is no file any more."""
        found = self.path.stat()
        file = (found.st_dev, found.st_ino)
        if found.st_size < self.place or self._file not in (None, file):
            raise Replaced(self.path.name)
        if found.st_size == self._size and self._file == file and not self.has_more:
            return []
        self._file, self._size = file, found.st_size
        with open_plain(self.path) as opened:
            opened.seek(self.place)
            data = opened.read(self._most)
        self.has_more = self.place + len(data) < found.st_size
        return self._decoded(data)

    def _decoded(self, data: bytes) -> list[Event]:
        end = data.rfind(b"\n") + 1
        if not end:
            if len(data) == self._most:
                # A line without an end in sight: nothing that is an event is so long.
                self.place += len(data)
                self._skipping = True
            return []
        self.place += end
        lines = data[:end].split(b"\n")
        if self._skipping:
            self._skipping = False
            self.unread += 1
            lines = lines[1:]
        events = []
        for line in lines:
            try:
                events.append(decode(line))
            except UnreadableLine:
                self.unread += bool(line.strip())
        return events


class Replaced(Exception):
    """The file is another one than before, or was cut: it has to be read anew."""
