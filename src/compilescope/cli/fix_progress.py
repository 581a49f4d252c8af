"""How `fix` goes, for who waits: a bar at a terminal, else a plain line for each step."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from compilescope.cli.options import report_width

_WIDTH = 20


class FixProgress:
    """On stderr: stdout is for what comes of it."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._drawn = False

    def begin(self) -> None:
        self.tell("the program is run many times, and what it prints is not shown")

    def show(self, doing: str, done: int, total: int) -> None:
        """What is done now, how much of it, of how much; on a terminal only."""
        if not _is_terminal():
            return
        self._drawn = True
        full = round(_WIDTH * done / total) if total else 0
        bar = f"[{'#' * full}{'.' * (_WIDTH - full)}] " if total else ""
        room = report_width() - len(bar) - 10
        self._write(f"\r\x1b[K{bar}{_printable(doing)[:room]} {self._seconds:.0f} s")

    def tell(self, line: str) -> None:
        """What has come of a step; where there is no terminal to draw a bar on."""
        if not _is_terminal():
            self._write(f"compilescope fix [{self._seconds:.0f} s] {_printable(line)}\n")

    def clear(self) -> None:
        if self._drawn:
            self._write("\r\x1b[K")

    @property
    def _seconds(self) -> float:
        return time.monotonic() - self._started

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            print(text, end="", file=sys.stderr, flush=True)


@contextmanager
def fix_progress() -> Iterator[FixProgress]:
    progress = FixProgress()
    progress.begin()
    try:
        yield progress
    finally:
        progress.clear()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _printable(text: str) -> str:
    """Parts of it were written by the program: they must not steer the terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
