"""The event file of one process: JSON lines, appended as things happen.

Each line is written to a file opened for appending, so that a process that is killed leaves every
event it finished. Reading counts the lines it cannot read and never stops at one. Short texts that
events name are lines too, see `text_lines`; whoever reads events passes over them.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from io import FileIO
from os import lstat
from pathlib import Path
from typing import BinaryIO

from compilescope.base.patterns import late
from compilescope.base.processes.interruptions import let_through
from compilescope.record.equal_values import SharingDecoder
from compilescope.record.event import Event, UnreadableLine, decode
from compilescope.record.own_files import create, let_go, room_beyond, size_of
from compilescope.record.plain_files import open_plain
from compilescope.record.text_lines import without_texts

LONGEST_LINE = 8 << 20
"""Bytes: what is decoded of a line takes several times that. Chosen: no event of a program is so
long."""
_CHUNK = 1 << 16
"""Bytes of a line that is too long, skipped at a time. Chosen: a bound for memory."""
_BATCH = 1 << 18
"""Bytes that are read at a time. Chosen: hundreds of events, and little memory."""
_SHORTEST = len('{"id":"","time_ns":0,"pid":0,"body":{}}')
_NAME = late(r"^events-(\d+(?:\.\d+)?)\.jsonl$")
_MOST_WAITING = 4 << 20
"""Bytes that a process keeps while they cannot be written. Chosen: memory of the user's program;
what comes later is dropped and counted."""


class EventFile:
    """The writing end. Never raises on a full disk: what could not be written is counted.

    It holds no descriptor (see `own_files`): each write opens the file by its path, makes sure that
    the descriptor is that file, and closes it again.
    """

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        # A handler of the program's that interrupts a write may compile, and write in turn.
        self._lock = threading.RLock()
        self._waiting = b""
        self._dropped = 0
        self._ours: os.stat_result | None = None

    @staticmethod
    def claim(folder: Path, rank: int) -> tuple[EventFile, str]:
        """A new file in `folder`, and the name of this process within the run."""
        path = folder / f"events-{rank}.jsonl"
        try:
            # The first process of a rank is that rank; exclusive creation settles who is first.
            create(path, "xb")
            return EventFile(path), str(rank)
        except FileExistsError:
            return EventFile.beside(folder, rank)

    @staticmethod
    def beside(folder: Path, rank: int) -> tuple[EventFile, str]:
        """As `claim`, for a process that must not pass for the rank itself."""
        pid = os.getpid()
        path = folder / f"events-{rank}.{pid}.jsonl"
        create(path, "ab")
        return EventFile(path), f"{rank}:{pid}"

    @property
    def lost(self) -> int:
        """Lines that cannot be brought into the file."""
        with self._lock:
            self.flush()
            return self._dropped + self._waiting.count(b"\n")

    def write(self, line: bytes, more: bool = False) -> bool:
        """Append a line. One that has `more` to follow waits for it: to open the file takes longer
        than to write. False where it is dropped."""
        with self._lock:
            kept = not self._waiting or len(self._waiting) + len(line) <= _MOST_WAITING
            if kept:
                self._waiting += line + b"\n"
            else:
                self._dropped += 1
            if not more:
                self._write_waiting()
            return kept

    def flush(self) -> None:
        """Write what waits, as far as that can be done now."""
        with self._lock:
            if self._waiting:
                self._write_waiting()

    def _write_waiting(self) -> None:
        """What cannot be written now may be later: descriptors come free, and so does space."""
        data, self._waiting = self._waiting, b""
        left = data
        try:
            # A file object: if an exception of the program's comes here, it closes itself.
            file = FileIO(self._path, "ab")
            # The file that it was at first: one that has taken its place is another's.
            ours = self._ours = self._ours or lstat(self._path)
            try:
                before = size_of(file, ours)
                try:
                    done, end = 0, _whole_lines(data, room_beyond(before))
                    while done < end:
                        done += file.write(data[done:end])
                    left = data[end:]
                except BaseException:
                    # The file knows how far it came, wherever the exception came from.
                    left = data[max(size_of(file, ours) - before, 0) :]
                    raise
            finally:
                let_go(file, ours)
        except OSError as error:
            let_through(error)  # Else: no disk, no room, no descriptor.
        finally:
            self._waiting = left + self._waiting

    def close(self) -> None:
        """What still waits is dropped: it is the parent's, after a fork."""
        self._dropped += self._waiting.count(b"\n")
        self._waiting = b""


def _whole_lines(data: bytes, room: int) -> int:
    """How many of the bytes to write, where there is room for so many."""
    return len(data) if room >= len(data) else data.rfind(b"\n", 0, room) + 1


def event_files(folder: Path) -> list[Path]:
    # Names, not paths: to compare two paths takes longer than to open a file.
    return [folder / name for name in sorted(filter(_NAME.match, os.listdir(folder)))]


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


def _skip_line(file: BinaryIO) -> bool:
    """Past the rest of a line that is too long; False where the file ends without its end."""
    while rest := file.readline(_CHUNK):
        if rest.endswith(b"\n"):
            return True
    return False


class EventReader:
    """Reads event files one after the other; `unread` counts what was no event."""

    def __init__(self) -> None:
        self.unread = 0
        self.torn_files: list[str] = []
        """Files whose last line has no end: their process was stopped while writing."""
        self._decoder = SharingDecoder()

    def read(self, path: Path, most: int | None = None) -> Iterator[Event]:
        """Its events; `most`: those in about so many bytes."""
        ended = True
        left = most
        with open_plain(path) as file:
            while data := file.read(_BATCH if left is None else max(min(_BATCH, left), 0)):
                start = file.tell() - len(data)
                whole = data.rfind(b"\n") + 1
                file.seek(start + whole)
                if whole:
                    ended, data = True, data[:whole]
                else:
                    data = file.readline(LONGEST_LINE)
                    ended = data.endswith(b"\n")
                    if not ended and len(data) == LONGEST_LINE:
                        ended, data = _skip_line(file), b""
                        self.unread += 1
                yield from self._events(data)
                left = None if most is None else most - file.tell()
        if not ended:
            self.torn_files.append(path.name)

    def _events(self, lines: bytes) -> list[Event]:
        """All at once where each line is an event, or one of a text, which is most of what a reader
        of events takes; else line by line."""
        with contextlib.suppress(UnreadableLine):
            return self._decoder.decode_lines(lines)
        # Only now: to look for texts takes longer than to fail at the first.
        events = without_texts(lines)
        if events is not lines:
            lines = events
            with contextlib.suppress(UnreadableLine):
                return self._decoder.decode_lines(lines)
        found = []
        for line in lines.split(b"\n"):
            if len(line) + 1 < _SHORTEST:
                # No event: millions of such lines are not worth a decoder's exception each.
                self.unread += bool(line.strip())
                continue
            try:
                found.append(self._decoder.decode(line))
            except UnreadableLine:
                self.unread += 1
        return found


class EventTail:
    """Reads an event file while it grows: at each look what is new, and never more than `most`.

    Only lines that have ended are read, so the place it has come to is always between two lines.
    It holds no descriptor between looks: a run may have hundreds of files.
    """

    def __init__(self, path: Path, most: int = LONGEST_LINE) -> None:
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
        lines = data[:end]
        if self._skipping:
            self._skipping = False
            self.unread += 1
            lines = lines.partition(b"\n")[2]
        events = []
        for line in without_texts(lines).split(b"\n"):
            try:
                events.append(decode(line))
            except UnreadableLine:
                self.unread += bool(line.strip())
        return events


class Replaced(Exception):
    """The file is another one than before, or was cut: it has to be read anew."""
