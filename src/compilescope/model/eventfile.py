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
    with path.open("rb") as file:
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
        with path.open("rb") as file:
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
