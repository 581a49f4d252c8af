"""Files of ours that are written inside the user's program, which must be none the worse for it.

The program may close descriptors that it did not open, run out of them, count them, or limit the
size of files. So none is held: a file is opened by its path, found to be that file, written and
closed. And nothing is written past the limit on sizes: the signal for that would be the program's.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from io import FileIO

# By name: a program may put others in their place, as tests do with fakes; it means its own calls.
from os import fstat, lstat
from pathlib import Path

from compilescope.base.processes.interruptions import programs_own

if sys.platform != "win32":
    import resource


def create(path: Path, mode: str) -> None:
    with FileIO(str(path), mode) as file:
        _open_to_its_maker(file)


def write_new(path: str, data: bytes) -> None:
    """A file with these bytes; OSError where it cannot be, and then perhaps a part of it."""
    if len(data) > room_beyond(0):
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    # A file object: if an exception of the program's comes here, it closes itself.
    file = FileIO(path, "wb")
    ours = lstat(path)
    try:
        size_of(file, ours)
        if ours.st_mode & 0o600 != 0o600:
            _open_to_its_maker(file)
        done = 0
        while done < len(data):
            done += file.write(data[done:])
    finally:
        let_go(file, ours)


def make_folder(path: Path) -> None:
    """With what is above it, if it is not there."""
    if not path.exists():
        path.mkdir(parents=True, exist_ok=True)
        os.chmod(path, path.stat().st_mode | 0o700)


def size_of(file: io.FileIO, ours: os.stat_result) -> int:
    """Bytes in the file. OSError where the descriptor is another one's by now: a thread of the
    program may have closed ours, and opened what is its own."""
    found = fstat(file.fileno())
    if (ours.st_dev, ours.st_ino) != (found.st_dev, found.st_ino):
        raise OSError(errno.EBADF, "The descriptor is another file's")
    return found.st_size


_not_ours: list[io.FileIO] = []
"""Never closed, not even when they are collected: their descriptors are the program's now."""


def let_go(file: io.FileIO, ours: os.stat_result) -> None:
    """Close it, if it is ours."""
    try:
        size_of(file, ours)
    except OSError as error:
        if programs_own(error) is None:
            _not_ours.append(file)
            return
        file.close()
        raise
    file.close()


def room_beyond(size: int) -> int:
    """By how much a file of this size may grow. Who writes past the limit is sent SIGXFSZ, of which
    a process dies unless it ignores it, as Python does at first."""
    if sys.platform == "win32":
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit - size, 0)


def _open_to_its_maker(file: io.FileIO) -> None:
    """Whatever the program's umask: who made it must be able to open it again."""
    if os.name != "nt":
        os.fchmod(file.fileno(), fstat(file.fileno()).st_mode & 0o777 | 0o600)
