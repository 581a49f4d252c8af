"""Opens files of a run, which anyone may have put there: a pipe in their place would let a reader
wait forever, and a device never ends."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path, *, links: bool = True) -> BinaryIO:
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


def read_plain(path: Path, *, links: bool = True) -> bytes:
    with open_plain(path, links=links) as file:
        return file.read()
