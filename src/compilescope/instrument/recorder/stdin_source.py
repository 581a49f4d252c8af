"""The text of a program that Python reads from standard input: `python -`.

No file has it, so the launcher makes one of the pipe. Here a process of the program looks at it
once more, so that the lines of `<stdin>` can be shown.
"""

from __future__ import annotations

import io
import linecache
import os
import shutil
import stat
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from compilescope.base.errors import ToolError
from compilescope.base.processes.interruptions import let_through

_NAME = "<stdin>"


@contextmanager
def kept_stdin() -> Iterator[IO[bytes] | None]:
    """What a program gets as its standard input that is its own text: a file that can be read
    again. None: as it is. At a terminal Python starts its prompt, as ever."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        raise ToolError(
            "There is no program to read: standard input is closed.",
            hint="Try `compilescope run - < script.py`.",
        ) from None
    if os.isatty(0) or (stat.S_ISREG(mode) and os.lseek(0, 0, os.SEEK_CUR) == 0):
        yield None
        return
    with tempfile.TemporaryFile() as copy, open(0, "rb", closefd=False) as given:
        shutil.copyfileobj(given, copy)
        copy.seek(0)
        yield copy


def know_stdin() -> None:
    """In a process of the program: give its text to linecache, where it can be had."""
    if sys.argv[:1] != ["-"] or _NAME in linecache.cache or not hasattr(os, "pread"):
        return
    try:
        about = os.fstat(0)
        data = os.pread(0, about.st_size, 0) if stat.S_ISREG(about.st_mode) else b""
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (OSError, SyntaxError, UnicodeDecodeError) as error:
        let_through(error)
        return  # Python says what is wrong with it.
    if text:
        # Without a time: linecache then does not ask the disk whether it has changed.
        lines = io.StringIO(text, newline=None).readlines()
        linecache.cache[_NAME] = (len(text), None, lines, _NAME)
