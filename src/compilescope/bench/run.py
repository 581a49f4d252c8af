"""A benchmark as a run: written as it is measured, so that nothing is lost when it stops."""

from __future__ import annotations

import os
import platform
import socket
import sys
from pathlib import Path
from time import time_ns

import msgspec

from compilescope.model import bodies
from compilescope.model.benchmarked import Machine
from compilescope.model.event import Event, encode
from compilescope.model.eventfile import EventFile
from compilescope.model.header import RunHeader, write_header
from compilescope.model.home import create_run, new_run_id
from compilescope.model.stack import Frame
from compilescope.version import VERSION


class BenchRun:
    """The run of one `compilescope bench`."""

    def __init__(self, home: Path, label: str, command: tuple[str, ...], machine: Machine) -> None:
        self._header = RunHeader(
            run=new_run_id(f"bench-{label}"),
            tool=VERSION,
            command=command,
            cwd=os.getcwd(),
            root=os.getcwd(),
            host=socket.gethostname(),
            started_ns=time_ns(),
            launcher_pid=os.getpid(),
            main_pid=os.getpid(),
        )
        self.folder = create_run(home, self._header)
        self._file, self._name = EventFile.claim(self.folder, 0)
        self._written = 0
        self._time_ns = 0
        self.write(
            bodies.ProcessStarted(
                argv=tuple(sys.argv),
                python=platform.python_version(),
                torch=machine.torch,
                parent_pid=os.getppid(),
                device="cuda" if machine.accelerators else "cpu",
            )
        )
        self.write(machine)

    def write(self, body: bodies.Body, stack: tuple[Frame, ...] = ()) -> None:
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

    def end(self, status: int) -> None:
        self.write(bodies.ProcessEnded(lost=self._file.lost))
        self._file.close()
        header = msgspec.structs.replace(self._header, ended_ns=time_ns(), exit_status=status)
        write_header(self.folder, header)
