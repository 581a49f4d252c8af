"""Makes sure that SIGCHLD is not ignored, as some supervisors leave it.

Ignored, the system keeps no status of a child, and every program that ends would seem to have
succeeded. Our own processes hear it; the program that `run` starts finds it as we did.
"""

from __future__ import annotations

import signal

_was_ignored = False


def hear_children() -> None:
    """From now on, in this process and in what it starts."""
    global _was_ignored
    number = getattr(signal, "SIGCHLD", None)
    if number is not None and signal.getsignal(number) == signal.SIG_IGN:
        _was_ignored = True
        signal.signal(number, signal.SIG_DFL)


def as_inherited() -> None:
    """In a new process that becomes the user's program."""
    if _was_ignored:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
