"""The time limit of a command, and how much of it each stage may use.

A part is kept back for what comes after the stage: a check in a fresh process, files, the exit.
Time in which the command was stopped (Ctrl-Z) does not count.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

_HALF = 0.5
"""Of what is left: the least for a stage, and the most kept back of a short limit. Chosen: an
even split; a stage that finds nothing needs no reserve (`Deadline.leaving`)."""
_CLOSING_S, _CLOSING = 0.3, 0.02
"""Kept back of a limit, in seconds and as a share of it. Chosen, not measured."""

_begun: Callable[[], float] | None = None
_stopped_s = 0.0
_pauses = 0


def clock() -> float:
    """The monotonic clock, less the time in which this command was stopped (Ctrl-Z)."""
    return time.monotonic() - _stopped_s


def note_pause(seconds: float) -> None:
    """The command, and all that it runs, was stopped for so long."""
    global _stopped_s, _pauses
    _stopped_s += seconds
    _pauses += 1


def pauses() -> int:
    """How often it was: who keeps time in another process knows by this that it did not count."""
    return _pauses


def begin_command() -> None:
    """A limit counts from when this process started, imports included."""
    global _begun
    _begun = cache(_process_started)


def command_begun() -> float:
    """By `clock`; now, where a command is called within another program."""
    return clock() if _begun is None else _begun()


def _process_started() -> float:
    # Only commands with a limit ask, so only they pay for psutil.
    import psutil

    ago = time.time() - float(psutil.Process().create_time())
    return time.monotonic() - max(0.0, ago)


class OutOfTime(Exception):
    """The stage has used up its time."""


class Deadline:
    """`seconds` from `begun` by `clock`; None: there is none."""

    def __init__(self, seconds: float | None = None, *, begun: float | None = None) -> None:
        self.seconds = seconds
        start = clock() if begun is None else begun
        self._end = math.inf if seconds is None else start + seconds - closing_s(seconds)
        self._floor = -math.inf
        self._reserve: Callable[[], float] = _nothing

    @property
    def until(self) -> float:
        """When the present stage ends, by `clock`."""
        return min(self._end, max(self._end - self._reserve(), self._floor))

    @property
    def left_s(self) -> float:
        """To the present stage; below zero once it is over."""
        return self.until - clock()

    @property
    def is_over(self) -> bool:
        return self.left_s <= 0

    def limit(self, own_s: float) -> float:
        """What something may take that has a limit of its own. Raises `OutOfTime`."""
        left = self.left_s
        if left <= 0:
            raise OutOfTime
        return min(own_s, left)

    @contextmanager
    def leaving(self, reserve: Callable[[], float]) -> Iterator[None]:
        """The block leaves so many seconds for what follows: asked anew each time, since that may
        get cheaper. It has half of what is left in any case: who finds nothing needs no reserve."""
        before = self._reserve, self._floor
        now = clock()
        if math.isfinite(self._end):
            self._floor = now + _HALF * max(0.0, self.until - now)
        self._reserve = reserve
        try:
            yield
        finally:
            self._reserve, self._floor = before


def closing_s(seconds: float) -> float:
    """Kept back of a limit: to end processes, to write and to print."""
    return min(_HALF * seconds, _CLOSING_S + _CLOSING * seconds)


def _nothing() -> float:
    return 0.0
