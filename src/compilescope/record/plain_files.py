"""Opens files of a run, and files that a run or a log names, which anyone may have written.

Only plain files: a pipe in their place would let a reader wait forever, and a device never ends.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_CHUNK = 1 << 20
"""Bytes that are read at a time. Chosen: a few reads for most files, and little memory."""
LARGEST_GIVEN = 64 << 20
"""Bytes. Chosen: far above what a person writes by hand or a tool keeps in one file for us."""
LARGEST_SOURCE = 4 << 20
"""Bytes. Chosen: a source written by hand is far shorter, and it bounds memory."""


def open_plain(path: Path | str, *, links: bool = True) -> BinaryIO:
    """For reading. OSError where it is no plain file; `links`: one may lead to it."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_BINARY", 0) | (0 if links else getattr(os, "O_NOFOLLOW", 0))
    opened = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "Not a plain file", str(path))
        return open(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def read_plain(path: Path, *, links: bool = True, most: int = -1) -> bytes:
    """All of it, or its first bytes, `most` of them."""
    with open_plain(path, links=links) as file:
        return file.read(most)


def read_given(path: Path, *, most: int = LARGEST_GIVEN) -> bytes:
    """A file that the user names: a plain one, or a pipe that somebody writes to, such as
    `<(command)`. OSError where there is nothing to read, or more than `most` bytes."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    with open(os.open(path, flags | getattr(os, "O_BINARY", 0)), "rb", buffering=0) as file:
        mode = os.fstat(file.fileno()).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        # Nothing yet is None, while an end without a beginning is a pipe without a writer.
        first = file.read(_CHUNK)
        if first == b"" and stat.S_ISFIFO(mode):
            raise OSError(errno.EPIPE, "It is a pipe that nobody writes to", str(path))
        if hasattr(os, "set_blocking"):
            os.set_blocking(file.fileno(), True)
        data = bytearray(first or b"")
        while len(data) <= most and (more := file.read(_CHUNK)):
            data += more
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return bytes(data)


def read_source(file: str) -> bytes:
    """A source file. OSError or ValueError where there is none that could be a program's."""
    data = read_plain(Path(file), most=LARGEST_SOURCE + 1)
    if len(data) > LARGEST_SOURCE:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), file)
    return data


def read_source_text(file: str) -> str:
    """As Python reads it, its lines all ended alike. SyntaxError where it names no encoding that
    there is."""
    # Not with the module: every command opens files of runs, few read sources.
    import io
    import tokenize

    data = io.BytesIO(read_source(file))
    encoding, _ = tokenize.detect_encoding(data.readline)
    data.seek(0)
    return io.TextIOWrapper(data, encoding).read()
