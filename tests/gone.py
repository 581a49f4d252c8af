"""Waits for the end of processes, however busy the machine is."""

from __future__ import annotations

import time

from compilescope.base.processes.table import is_running

LIMIT_S = 600


def is_gone(*pids: int) -> bool:
    """All of them, before long. One that waits to be reaped has ended."""
    deadline = time.monotonic() + LIMIT_S
    while any(map(is_running, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
