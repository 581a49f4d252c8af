"""No program outlives its job, nor the process that started it, however that one dies."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import psutil

from compilescope.processes import end_session

_PR_SET_CHILD_SUBREAPER = 36
_REAP_S = 2.0
_KEEPER = (
    "import sys; sys.path[:] = {path!r}\n"
    "from compilescope.scale.orphans import keep_watch; keep_watch()"
)


class Keeper:
    """A process of its own that cleans up after us when we are gone without having done it.

    A signal at a parent's death reaches one process only, and SIGKILL lets nobody clean up. The
    keeper reads a pipe from us; at its end it ends the program and removes the folder that we had
    named last.
    """

    _mine: ClassVar[tuple[int, Keeper] | None] = None

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            # -I: a folder of the user's must not hide a module.
            [sys.executable, "-I", "-c", _KEEPER.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @classmethod
    def of_this_process(cls) -> Keeper:
        """Started at the first job, and again where it died."""
        if cls._mine is None or cls._mine[0] != os.getpid() or not cls._mine[1].is_alive:
            cls._mine = os.getpid(), cls()
        return cls._mine[1]

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def program(self, pid: int) -> None:
        """0: it has ended."""
        self._write("program", str(pid))

    def folder(self, path: str) -> None:
        """Empty: it is removed."""
        self._write("folder", path)

    def _write(self, what: str, value: str) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            os.write(self._process.stdin.fileno(), os.fsencode(f"{what} {value}\n"))


def keep_watch() -> None:
    """The keeper's own life."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kept: dict[bytes, bytes] = {}
    for line in sys.stdin.buffer:
        what, _, value = line.rstrip(b"\n").partition(b" ")
        kept[what] = value
    program = int(kept.get(b"program", 0))
    if program:
        end_session(program, running=True)
    if kept.get(b"folder"):
        shutil.rmtree(os.fsdecode(kept[b"folder"]), ignore_errors=True)


def adopt_orphans() -> None:
    """Children of children that lose their parent become ours, so that we find them."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> frozenset[int]:
    """Of this process, ended ones that wait to be reaped included."""
    listed = list(Path("/proc/self/task").glob("*/children"))
    found: set[int] = set()
    for path in listed:
        with contextlib.suppress(OSError):  # A thread that has just ended has none.
            found.update(map(int, path.read_bytes().split()))
    if not listed:  # Some kernels are built without these files.
        with contextlib.suppress(psutil.Error):
            found.update(child.pid for child in psutil.Process().children())
    return frozenset(found)


def end_children(but: Iterable[int]) -> None:
    """End the children that came since, with all that they started, until none is left."""
    until = time.monotonic() + _REAP_S
    spared = frozenset(but)
    while (left := children() - spared) and time.monotonic() < until:
        for pid in left:
            end_session(pid, running=True)
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _reap(left)


def _reap(pids: Iterable[int]) -> None:
    """What we killed is gone in a moment, and its own children are ours then."""
    for pid in pids:
        for _ in range(100):
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    break
            except ChildProcessError:
                break
            time.sleep(0.001)
