"""Reads logs while they grow: what is new at each look, and whether anyone still writes.

The run is in its place from the start, so that other commands can look at it meanwhile.
"""

from __future__ import annotations

import os
import select
import socket
import stat
import sys
import time
from pathlib import Path

import msgspec

from compilescope.base.errors import ToolError
from compilescope.logs.format import LogSource
from compilescope.logs.input_files import STDIN, LogLines, Opened, log_files, source_of
from compilescope.logs.reader import (
    Chain,
    ReadLogs,
    chain_for,
    log_header,
    log_read,
    program_folder,
)
from compilescope.logs.run_writer import RunWriter, remove_marks
from compilescope.record.bodies import LogRead
from compilescope.record.header import write_header

_QUIET_S = 3.0
"""A file that nobody writes has ended once it has been still for so long. Chosen: longer than the
pause between two writes of a buffer, short for who waits."""
_PIPE_READ = 1 << 16
"""Bytes at a time: what a pipe of Linux holds."""


class _Followed:
    """One source that may still grow."""

    def __init__(self, name: str, writer: RunWriter) -> None:
        self.name = name
        self.source: LogSource = source_of(name)
        self._writer = writer
        self._lines = LogLines(self.source.tally)
        self._chain: Chain | None = None
        self._size = 0
        self.at_end = False
        self._opened: Opened | None = None
        if name != STDIN:
            try:
                self._opened = Opened(name, self.source.tally)
            except OSError as error:
                self.source.tally.problems.append(f"It could not be opened: {error.strerror}.")
                self.at_end = True

    def poll(self) -> bool:
        """Read what is there; False where nothing new is."""
        data = self._read_pipe() if self._opened is None else self._opened.read()
        if not data:
            return False
        block = self._lines.add(data)
        if block:
            self._feed(block)
        return True

    def _read_pipe(self) -> bytes:
        if self.at_end:
            return b""
        try:
            descriptor = sys.stdin.fileno()
            if not select.select([descriptor], [], [], 0)[0]:
                return b""
            data = os.read(descriptor, _PIPE_READ)
        except (OSError, ValueError):
            data = b""
        self.at_end = not data
        return data

    def _feed(self, block: bytes) -> None:
        if self._chain is None:
            self._chain = chain_for(block, self._writer, self.source)
        self._chain.feed(block)
        self._size += len(block)

    def finish(self) -> LogRead:
        rest = self._lines.end()
        if rest:
            self._feed(rest)
        if self._chain is not None:
            self._chain.finish()
        if self._opened is not None:
            self._opened.close()
        return log_read(self.source, self._size)


class Follower:
    """Follows logs into the run in `folder`."""

    def __init__(
        self, paths: list[str], folder: Path, source_folders: tuple[str, ...] = ()
    ) -> None:
        self._paths = paths
        self._folder = folder
        names, _ = log_files(paths)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            raise ToolError(f"{folder} already exists.", hint="Choose another with -o.") from None
        except OSError as error:
            raise ToolError(f"Cannot write the run {folder}: {error.strerror}.") from None
        self.header = msgspec.structs.replace(
            log_header(folder.name, paths, program_folder(folder)),
            launcher_pid=os.getpid(),
            host=socket.gethostname(),
            ended_ns=None,
        )
        write_header(folder, self.header)
        self._writer = RunWriter(folder, packed=False, source_folders=source_folders)
        self._followed: dict[str, _Followed] = {}
        self._take(names)
        self._last_news = time.monotonic()

    def _take(self, names: list[str]) -> None:
        for name in names:
            if name not in self._followed:
                self._followed[name] = _Followed(name, self._writer)

    def poll(self) -> bool:
        """Read all that is new, of files that came meanwhile too."""
        self._take(log_files(self._paths)[0])
        news = False
        for followed in self._followed.values():
            while followed.poll():
                news = True
        if news:
            self._last_news = time.monotonic()
            self._writer.flush()
        return news

    def ended(self) -> bool:
        """Is there nobody left who could write more?"""
        if time.monotonic() - self._last_news < _QUIET_S:
            return False
        for followed in self._followed.values():
            if followed.name == STDIN:
                if not followed.at_end:
                    return False
            elif is_written(followed.name) is not False:
                return False
        return True

    def finish(self) -> ReadLogs:
        """Close the run, as it is."""
        found = []
        for followed in self._followed.values():
            one = followed.finish()
            found.append(one)
            self._writer.told_of(one)
        self._writer.close()
        remove_marks(self._folder)
        header = msgspec.structs.replace(self.header, ended_ns=time.time_ns())
        write_header(self._folder, header)
        return ReadLogs(self._folder.name, self._folder, self._writer.events, tuple(found))


def is_written(path: str) -> bool | None:
    """Return whether a process of this machine has the file open for writing; None if unknown."""
    try:
        wanted = os.stat(path)
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    hidden = False
    for process in processes:
        try:
            descriptors = os.listdir(f"/proc/{process}/fd")
        except FileNotFoundError:
            continue
        except OSError:
            hidden = True
            continue
        if any(_writes(process, number, wanted) for number in descriptors):
            return True
    return None if hidden else False


def _writes(process: str, number: str, wanted: os.stat_result) -> bool:
    try:
        found = os.stat(f"/proc/{process}/fd/{number}")
        if not stat.S_ISREG(found.st_mode) or not os.path.samestat(found, wanted):
            return False
        with open(f"/proc/{process}/fdinfo/{number}") as info:
            flags = next(line for line in info if line.startswith("flags:"))
    except (OSError, StopIteration):
        return False
    return bool(int(flags.split()[1], 8) & (os.O_WRONLY | os.O_RDWR))
