"""stdout and stderr as a command finds them: closed, full, or with a reader that has left.

What cannot be said is no reason to end with another status.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn


class _Nowhere(io.TextIOBase):
    """In place of a stream that is closed: `print` to None would go to the other one."""

    def write(self, text: str) -> int:
        return len(text)


def open_streams() -> None:
    if sys.stdout is None:
        sys.stdout = _Nowhere()
    if sys.stderr is None:
        sys.stderr = _Nowhere()


def say(*lines: str) -> None:
    """On stderr, if anybody listens."""
    with suppress(OSError, ValueError):
        for line in lines:
            print(line, file=sys.stderr)
        sys.stderr.flush()


@contextmanager
def told_if_possible() -> Iterator[None]:
    """For what follows a program's end: nothing that happens here may cost it its status."""
    try:
        yield
    except (OSError, ValueError) as error:
        # A stream that fails has nobody to be told to; of the rest the words are enough.
        if isinstance(error, OSError) and error.filename is None:
            return
        say(traceback.format_exc().rstrip())
    except Exception:
        say(traceback.format_exc().rstrip())


def settle_streams() -> None:
    """Write what is still to be written. Python would end with status 120 for a stream that
    cannot be: such a one is let go."""
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except (OSError, ValueError):
            setattr(sys, name, None)


def leave(status: int) -> NoReturn:
    """End with this status, also where PYTHONINSPECT is set for the program's sake."""
    if sys.flags.inspect or sys.flags.interactive:
        with suppress(Exception):
            atexit._run_exitfuncs()
        settle_streams()
        os._exit(status & 0xFF)
    sys.exit(status)
