"""What a command of ours records: a run of its own, or more events of a run that has ended.

Each event is in the file once it is written, so that nothing is lost where the command stops.
"""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from time import time_ns

import msgspec

from compilescope.base.version import VERSION
from compilescope.record.bodies import Body, ProcessEnded, ProcessStarted
from compilescope.record.event import Event, encode
from compilescope.record.eventfile import EventFile
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, new_run_id
from compilescope.record.stack import Frame


class _Appending:
    """Events of this process at the end of a run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file, self._name = EventFile.claim(folder, 0)
        self._written = 0
        self._time_ns = 0

    def write(self, body: Body, stack: tuple[Frame, ...] = ()) -> None:
        # The order of events is that of their times, and clocks stand still or step back.
        self._time_ns = max(time_ns(), self._time_ns + 1)
        event = Event(
            id=f"{self._name}.{self._written}",
            time_ns=self._time_ns,
            pid=os.getpid(),
            body=body,
            stack=stack,
        )
        self._written += 1
        self._file.write(encode(event))

    def close(self) -> None:
        self._file.close()


class CommandRun(_Appending):
    """The run of one command, from its start to its end."""

    def __init__(
        self,
        home: Path,
        label: str,
        command: tuple[str, ...],
        *,
        torch: str,
        device: str = "cpu",
    ) -> None:
        self._header = RunHeader(
            run=new_run_id(label),
            tool=VERSION,
            command=command,
            cwd=os.getcwd(),
            root=os.getcwd(),
            host=socket.gethostname(),
            started_ns=time_ns(),
            launcher_pid=os.getpid(),
            main_pid=os.getpid(),
        )
        super().__init__(create_run(home, self._header))
        self.write(
            ProcessStarted(
                argv=tuple(sys.argv),
                python=platform.python_version(),
                torch=torch,
                parent_pid=os.getppid(),
                device=device,
            )
        )

    def end(self, status: int) -> None:
        self.write(ProcessEnded(lost=self._file.lost))
        self.close()
        header = msgspec.structs.replace(self._header, ended_ns=time_ns(), exit_status=status)
        write_header(self.folder, header)


def append_bodies(folder: Path, told: Iterable[Body]) -> None:
    """What was found out about the run in `folder` after it had ended."""
    bodies = list(told)
    if not bodies:
        return
    file = _Appending(folder)
    for body in bodies:
        file.write(body)
    file.close()
