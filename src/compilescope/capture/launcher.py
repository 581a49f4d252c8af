"""Starts the program as its own process and waits for it, transparently.

The program keeps the terminal, its streams, its signals and its exit status. The launcher writes
the run's header at the start and the end, and nothing in between.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from compilescope.capture.signals import SignalRelay
from compilescope.capture.target import Target
from compilescope.errors import ToolError
from compilescope.model.header import RunHeader, write_header
from compilescope.model.home import create_run, new_run_id
from compilescope.settings import Settings, child_environment, torch_loads_extensions
from compilescope.version import VERSION

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Outcome:
    """How the program ended."""

    folder: Path
    header: RunHeader
    """As it is on disk, or would be if the disk were not full."""
    exit_status: int
    """As subprocess has it: negative for a signal."""
    header_written: bool


@dataclass(frozen=True)
class Begun:
    """A run whose program is about to start."""

    folder: Path
    header: RunHeader
    command: list[str]
    environment: dict[str, str]


def begin(target: Target, settings: Settings) -> Begun:
    """The run's folder and header, and how to start the program."""
    functions = tuple(name for name in settings.compile_names if ":" in name)
    command = target.command(functions)
    header = RunHeader(
        run=new_run_id(target.label),
        tool=VERSION,
        command=target.shown,
        cwd=str(target.cwd),
        root=target.root,
        host=socket.gethostname(),
        started_ns=time.time_ns(),
        launcher_pid=os.getpid(),
    )
    folder = create_run(settings.home.absolute(), header)
    boot = _HERE / ("boot" if torch_loads_extensions() else "boot_early")
    return Begun(
        folder, header, command, child_environment(replace(settings, run_dir=folder), boot)
    )


def ended_header(header: RunHeader, status: int) -> RunHeader:
    """With the program's end, as subprocess has its status."""
    return msgspec.structs.replace(
        header,
        ended_ns=time.time_ns(),
        exit_status=status if status >= 0 else None,
        signal=-status if status < 0 else None,
    )


def launch(target: Target, settings: Settings) -> Outcome:
    """Run `target` under capture and wait for its end."""
    begun = begin(target, settings)
    folder, header, command = begun.folder, begun.header, begun.command
    with SignalRelay() as relay:
        try:
            # The program inherits what a shell would have given it: descriptors and signal mask.
            process = subprocess.Popen(
                command, env=begun.environment, close_fds=False, preexec_fn=relay.restore_mask
            )
        except OSError as error:
            raise ToolError(f"Cannot start {command[0]}: {error.strerror}.") from None
        header = msgspec.structs.replace(header, main_pid=process.pid)
        _write(folder, header)
        status = relay.wait(process)
    header = ended_header(header, status)
    return Outcome(folder, header, status, _write(folder, header))


def die_by(number: int) -> None:
    """End this process by the signal that ended the program, so that a shell sees the same."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def _write(folder: Path, header: RunHeader) -> bool:
    try:
        write_header(folder, header)
        return True
    except OSError:
        return False  # A full disk must not cost the program its exit status.
