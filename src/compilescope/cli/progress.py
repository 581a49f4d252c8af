"""A note for who waits at a terminal, once it takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_PATIENCE_S = 1.0
_PAUSE_S = 0.2


@contextmanager
def progress_note(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Call it with (done, of how much): after a second it says so on stderr, on a terminal only."""
    started = time.monotonic()
    told = 0.0

    def note(done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        if sys.stderr.isatty() and now - started > _PATIENCE_S and now - told > _PAUSE_S:
            told = now
            percent = 100 * done // total if total else 100
            print(f"\r{doing}: {percent} %", end="", file=sys.stderr, flush=True)

    try:
        yield note
    finally:
        if told:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def doing_note() -> Iterator[Callable[[str], None]]:
    """Call it with what is done now: after a second that stands on stderr, on a terminal only."""
    started = time.monotonic()
    told = False

    def note(doing: str) -> None:
        nonlocal told
        if sys.stderr.isatty() and time.monotonic() - started > _PATIENCE_S:
            told = True
            print(f"\r\x1b[K{doing} ...", end="", file=sys.stderr, flush=True)

    try:
        yield note
    finally:
        if told:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
