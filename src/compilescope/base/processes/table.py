"""What the system knows of processes: is one running, its descendants, the memory they hold."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

_CLOCK_S = 60.0
"""How far the clock by which processes were started may be from the one by which runs are. Chosen:
generous to clocks, and short for an id to be used again."""


def is_running(pid: int, *, since: float | None = None) -> bool:
    """Is this process at work? One that waits to be reaped is not, nor is another that got its
    number after `since` (seconds since 1970), when the one that is meant was there already."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return since is None or process.create_time() < since + _CLOCK_S
    except psutil.AccessDenied:
        return True
    except (psutil.Error, ValueError, OverflowError):  # Files of runs may hold any number.
        return False


def descendants(pid: int) -> list[int]:
    """All descendants, by what the kernel lists with each thread: reads nothing of others."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        threads = Path(f"/proc/{waiting.pop()}/task")
        children: list[int] = []
        with contextlib.suppress(OSError):
            for thread in os.listdir(threads):
                with contextlib.suppress(OSError):
                    children += map(int, (threads / thread / "children").read_bytes().split())
        found += children
        waiting += children
    if not found and not os.path.exists(f"/proc/{os.getpid()}/task/{os.getpid()}/children"):
        return _by_parents(pid)
    return found


def _by_parents(pid: int) -> list[int]:
    with contextlib.suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def proportional_bytes(pid: int) -> int:
    """With its share of pages that others map too; what is its alone, where only that is known."""
    try:
        full = psutil.Process(pid).memory_full_info()
    except psutil.AccessDenied:
        return resident_bytes(pid)
    except psutil.Error:
        return 0
    return int(getattr(full, "pss", full.uss)) + int(getattr(full, "swap", 0))
