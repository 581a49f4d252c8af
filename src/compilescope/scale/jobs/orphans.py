"""Ends a job's program even when the process that started it is killed.

A small keeper process watches over it: no program outlives its job, nor the process that started
it, however that one dies.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import ClassVar

from compilescope.base.processes.channel import Channel
from compilescope.base.processes.child import end_session
from compilescope.base.processes.worker import Worker

_KEEPER = (
    "import sys; sys.path[:] = {path!r}\n"
    "from compilescope.scale.jobs.orphans import keep_watch; keep_watch()"
)


class ProgramKeeper(Worker):
    """A process of its own that cleans up after us when we are gone without having done it.

    A signal at a parent's death reaches one process only, and SIGKILL lets nobody clean up. The
    keeper hears from us; when we have closed our end, it ends the program and removes the folder
    that we had named last.
    """

    _mine: ClassVar[tuple[int, ProgramKeeper] | None] = None

    def __init__(self) -> None:
        # -I: a folder of the user's must not hide a module.
        command = [sys.executable, "-I", "-c", _KEEPER.format(path=sys.path)]
        super().__init__(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def of_this_process(cls) -> ProgramKeeper:
        """Started at the first job, and again where it died."""
        if cls._mine is None or cls._mine[0] != os.getpid() or not cls._mine[1].is_running:
            cls._mine = os.getpid(), cls()
        return cls._mine[1]

    def program(self, pid: int) -> None:
        """0: it has ended."""
        self.send(b"program %d" % pid)

    def folder(self, path: str) -> None:
        """Empty: it is removed."""
        self.send(b"folder " + os.fsencode(path))


def keep_watch() -> None:
    """The keeper's own life."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    kept: dict[bytes, bytes] = {}
    watched = Channel.given(int(sys.argv[-1]))
    while said := watched.receive():
        what, _, value = said.partition(b" ")
        kept[what] = value
    program = int(kept.get(b"program", 0))
    if program:
        end_session(program, running=True)
    if kept.get(b"folder"):
        shutil.rmtree(os.fsdecode(kept[b"folder"]), ignore_errors=True)
