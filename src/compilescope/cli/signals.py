"""A long command that gets SIGTERM or SIGHUP ends as on Ctrl-C: it cleans up and keeps its results.

After `kill -9`, `processes.guard_process` cleans up.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any


def _is_heard(name: str) -> bool:
    """What is ignored from the start stays so: that is what `nohup` is for."""
    number = getattr(signal, name, None)
    return number is not None and signal.getsignal(number) != signal.SIG_IGN


def on_end_signals(do: Callable[[int], object]) -> dict[int, Any]:
    """Where a polite end is asked for, `do` is called with the signal. Gives the handlers that were
    there before."""
    names = [name for name in ("SIGTERM", "SIGHUP") if _is_heard(name)]
    numbers: list[int] = [getattr(signal, name) for name in names]
    try:
        return {each: signal.signal(each, lambda number, _: do(number)) for each in numbers}
    except ValueError:
        return {}  # Not the main thread: whoever runs us sees to it.


@contextmanager
def ended_in_order(*, pausing: bool = False) -> Iterator[None]:
    """A polite end (`kill`) cleans up and keeps what there is, as Ctrl-C does. After `kill -9` the
    guard cleans up. With `pausing`, Ctrl-Z stops what the command runs too: for those that keep the
    time of all that by `deadline.clock`."""
    from compilescope.processes.guard import guarded
    from compilescope.processes.pause import stopping_together

    def leave(number: int) -> None:
        raise SystemExit(128 + number)

    before = on_end_signals(leave)
    try:
        with guarded() as guard, stopping_together(guard) if pausing else nullcontext():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.stdout.flush()
