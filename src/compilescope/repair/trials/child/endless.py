"""Stops a replay that does not end: `while x.abs().max() > 1` never does on made-up infinities."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_AGAIN_S = 1.0
"""A bare `except` of the program's may catch it once: it rings again. Chosen: long enough for the
program to leave its handler."""


class Endless(BaseException):
    """It took too long. Not an `Exception`: the program is not to take it for its own."""


@contextlib.contextmanager
def ending_within(seconds: float | None) -> Iterator[None]:
    """Raises `Endless` in the block after so long; None, and where no alarm can be set: never."""
    alarm = getattr(signal, "setitimer", None)
    free = threading.current_thread() is threading.main_thread()
    if seconds is None or alarm is None or not free or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    alarm(signal.ITIMER_REAL, seconds, _AGAIN_S)
    try:
        yield
    finally:
        alarm(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


def _ring(number: int, frame: FrameType | None) -> None:
    raise Endless
