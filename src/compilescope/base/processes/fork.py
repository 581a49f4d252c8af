"""For processes that fork: is it safe to fork, how to serve orders with forks of this process, and
how to end a child with all that it started."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from compilescope.base.processes.channel import Channel

_PR_SET_PDEATHSIG = 1
"""Of Linux (linux/prctl.h)."""


def fork_is_safe() -> bool:
    """Threads are lost in a fork, and so is what a device's driver holds."""
    torch = sys.modules.get("torch")
    started = torch is not None and torch.cuda.is_initialized()
    return threading.active_count() == 1 and not started


def die_with_parent(parent: int | None = None) -> None:
    """In a child: no parent, no child. A `parent` that is known may be gone already."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)


def in_a_fork(task: Callable[[], None], limit_s: float) -> None:
    """Until it ends. A crash or the time limit ends the fork alone."""
    child = os.fork()
    if child == 0:
        _run_and_leave(task, limit_s)
    os.waitpid(child, 0)


def _run_and_leave(task: Callable[[], None], limit_s: float) -> NoReturn:
    status = 1
    try:
        die_with_parent()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        task()
        status = 0
    finally:
        # Nothing of the parent's may run twice: no exit handler, no caller's `finally`.
        os._exit(status)


def kill_group(pid: int) -> None:
    """A child and what it started, never ourselves."""
    for kill in (os.killpg, os.kill) if pid != os.getpid() else ():
        with suppress(OSError):
            kill(pid, signal.SIGKILL)


def serve_forks(
    control: Channel, ended: Callable[[bytes, bool], None] = lambda order, is_last: None
) -> bytes | None:
    """Fork a child for each order of a `worker.WarmWorker`, which is told how each ends. Comes back
    in each child with its order; with None in this process when the other side is gone, or when it
    has become unsafe to fork. `ended`: an order's child has, and no other is running."""
    bell, server = _ChildBell(), os.getpid()
    running: dict[int, tuple[Channel, bytes]] = {}
    while fork_is_safe():
        if bell.wait(control):
            order = control.receive()
            if not order:
                break
            line = Channel(socket.socket(fileno=control.passed[0]))
            pid = os.fork()
            if pid == 0:
                for each in (control, line, *(other for other, _ in running.values())):
                    each.close()
                bell.leave()
                os.setsid()
                die_with_parent(server)
                return order
            running[pid] = line, order
            _tell(line, pid)
        for pid in list(running):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                kill_group(pid)  # What it started, and did not end.
                line, order = running.pop(pid)
                _tell(line, os.waitstatus_to_exitcode(status))
                line.close()
                ended(order, not running)
    for pid in running:
        kill_group(pid)
    return None


def _tell(line: Channel, number: int) -> None:
    with suppress(OSError):  # Whoever gave the order no longer waits.
        line.send(str(number).encode())


class _ChildBell:
    """Rings when a child ends, so that one wait does for children and for orders."""

    def __init__(self) -> None:
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def wait(self, watched: Channel) -> bool:
        """Until a child ends or there is something to read: is there?"""
        ready, _, _ = select.select([watched.fileno(), self._wake], [], [])
        if self._wake in ready:
            os.read(self._wake, 4096)
        return watched.fileno() in ready

    def leave(self) -> None:
        """In the child: its own children are its own affair."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (self._wake, self._woken):
            with suppress(OSError):
                os.close(descriptor)
