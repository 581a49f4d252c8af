"""Stops a run: first as Ctrl-C does, and by force where that did not help.

A number of a process may belong to another one by now. So a signal goes only to a process that is
at work since before the run began, on this machine, and the user's own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import psutil

from compilescope.errors import ToolError
from compilescope.model.header import RunHeader, read_header
from compilescope.model.run import is_live
from compilescope.processes.table import descendants

KILL_AFTER_S = 10.0
"""How long a program may take to end after Ctrl-C until Kill is offered. Chosen;
docs/guides/dashboard.md says it to users."""
_GRACE_S = 3.0
"""How long the launcher may take to record that its program was killed. Chosen: it only writes a
header, and a reader waits for the answer."""


def interrupt(folder: Path) -> None:
    """Ctrl-C for the launcher, which hands it on to the program."""
    _signal(_launcher(read_header(folder)), signal.SIGINT)


def kill(folder: Path) -> None:
    """The program at once. Its launcher lives on to record that, unless it can't."""
    launcher = _launcher(read_header(folder))
    below = [_process(pid) for pid in descendants(launcher.pid)]
    for process in below:
        if process is not None:
            _signal(process, signal.SIGKILL)
    end = time.monotonic() + (_GRACE_S if below else 0.0)
    while time.monotonic() < end:
        if not is_live(read_header(folder)):
            return
        time.sleep(0.05)
    _signal(launcher, signal.SIGKILL)


def _launcher(header: RunHeader) -> psutil.Process:
    pid = header.launcher_pid
    process = _process(pid) if pid is not None and is_live(header) else None
    if process is None:
        raise ToolError("This run has ended.", hint="Load the page again to see its report.")
    try:
        own = process.uids().real == os.getuid()
    except psutil.Error:
        own = False
    if not own or process.pid == os.getpid():
        raise ToolError(f"Process {process.pid}, which records this run, is not yours to stop.")
    return process


def _process(pid: int) -> psutil.Process | None:
    """None: it has ended."""
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    """psutil sees to it that the number was not given to another process meanwhile."""
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)
