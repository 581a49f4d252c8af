"""Ctrl-Z: what a command has started stops and continues with it.

Its programs run in sessions of their own, which a terminal does not reach; they would go on while
the command sleeps. Time in which it was stopped is not on any limit: see `deadline.clock`. A child
that keeps time itself learns of it from a ledger, for nobody can tell how long he slept.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Collection, Iterator
from typing import IO

from compilescope.base.processes.deadline import note_pause
from compilescope.base.processes.table import descendants

_MOST_LOOKS = 20
"""Chosen: a bound, for a program that starts processes faster than we stop them."""
_STDERR = 2
"""The descriptor, whatever `sys.stderr` is by now."""
_SHOW_CURSOR = b"\x1b[?25h"
_MOST_DIGITS = 64
"""Bytes of a number in the ledger, and more."""


@contextlib.contextmanager
def stopping_together(spared: Collection[int] = ()) -> Iterator[None]:
    """`spared` processes go on, so that they notice if the command is killed meanwhile."""
    in_main = threading.current_thread() is threading.main_thread()
    number = getattr(signal, "SIGTSTP", None)
    if number is None or not in_main or signal.getsignal(number) != signal.SIG_DFL:
        yield  # A shell without job control has it ignored.
        return

    def stop(*_: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        try:
            _stop_with(frozenset(spared))
        finally:
            signal.signal(number, stop)

    signal.signal(number, stop)
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL)


def _stop_with(spared: frozenset[int]) -> None:
    stopped: list[int] = []
    begun = time.monotonic()
    try:
        # Until there are no new ones: some start others while we look.
        for _ in range(_MOST_LOOKS):
            found = [pid for pid in descendants(os.getpid()) if _may_stop(pid, spared, stopped)]
            if not found:
                break
            for pid in found:
                _send(pid, signal.SIGSTOP)
            stopped += found
        _show_cursor()
        os.kill(os.getpid(), signal.SIGTSTP)  # Until somebody continues us; at once, if nobody can.
    finally:
        seconds = time.monotonic() - begun
        note_pause(seconds)
        _write_down(seconds)  # Before they go on: they look at once.
        for pid in stopped:
            _send(pid, signal.SIGCONT)


_ledger: IO[bytes] | None = None


def ledger() -> int:
    """The descriptor of a file that says for how many seconds this command was stopped so far: for
    children, which give it to `keep_time_with`."""
    global _ledger
    if _ledger is None:
        _ledger = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
    return _ledger.fileno()


def _write_down(seconds: float) -> None:
    if _ledger is not None:
        with contextlib.suppress(OSError):
            os.pwrite(ledger(), f"{_noted(ledger()) + seconds:.6f}".encode(), 0)


def keep_time_with(descriptor: int) -> None:
    """In a child with limits of its own: `deadline.clock` stands still while its command does."""
    number = getattr(signal, "SIGCONT", None)
    known = _noted(descriptor)

    def continued(*_: object) -> None:
        nonlocal known
        before, known = known, _noted(descriptor)
        if known > before:
            note_pause(known - before)

    if number is not None:
        signal.signal(number, continued)


def _noted(descriptor: int) -> float:
    return float(os.pread(descriptor, _MOST_DIGITS, 0) or 0)


def _may_stop(pid: int, spared: frozenset[int], stopped: list[int]) -> bool:
    """What was stopped before us, by itself or by a user, stays so when we continue."""
    return pid not in spared and pid not in stopped and not _is_stopped(pid)


def _is_stopped(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t", b"Z", b"X")
    return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def _show_cursor() -> None:
    """A progress bar hides it."""
    with contextlib.suppress(OSError):
        if os.isatty(_STDERR):
            os.write(_STDERR, _SHOW_CURSOR)
