"""Starts the program as its own process and waits for it, transparently.

The program keeps the terminal, its streams, its signals and its exit status. The launcher writes
the run's header at the start and the end, and nothing in between.
"""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from compilescope.errors import ToolError
from compilescope.model.header import RunHeader, write_header
from compilescope.model.home import create_run, new_run_id
from compilescope.model.presence import begin_presence
from compilescope.processes.child_signal import as_inherited
from compilescope.processes.fork import die_with_parent
from compilescope.recorder.signals import SignalRelay
from compilescope.recorder.stdin_source import kept_stdin
from compilescope.recorder.target import Target
from compilescope.settings import Settings, child_environment
from compilescope.version import VERSION

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class ProgramOutcome:
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
    begin_presence(folder)
    environment = child_environment(settings._replace(run_dir=folder), _HERE / "boot")
    return Begun(folder, header, command, environment)


def ended_header(header: RunHeader, status: int) -> RunHeader:
    """With the program's end, as subprocess has its status."""
    return msgspec.structs.replace(
        header,
        ended_ns=time.time_ns(),
        exit_status=status if status >= 0 else None,
        signal=-status if status < 0 else None,
    )


def launch(target: Target, settings: Settings) -> ProgramOutcome:
    """Run `target` under capture and wait for its end."""
    with _own_stdin(target) as stdin:
        begun = begin(target, settings)
        header, status = _run(begun, stdin)
    header = ended_header(header, status)
    return ProgramOutcome(begun.folder, header, status, _write(begun.folder, header))


def _run(begun: Begun, stdin: IO[bytes] | None) -> tuple[RunHeader, int]:
    with SignalRelay() as relay:
        try:
            # The program inherits what a shell would have given it: descriptors and signal mask.
            process = subprocess.Popen(
                begun.command,
                env=begun.environment,
                stdin=stdin,
                close_fds=False,
                preexec_fn=functools.partial(_begin_as_program, relay, os.getpid()),
            )
        except OSError as error:
            raise ToolError(f"Cannot start {begun.command[0]}: {error.strerror}.") from None
        header = msgspec.structs.replace(begun.header, main_pid=process.pid)
        _write(begun.folder, header)
        return header, relay.wait(process)


def _begin_as_program(relay: SignalRelay, launcher: int) -> None:
    """In the new process, just before it becomes the program. Without us there would be no
    launcher to kill: who kills it means the program."""
    die_with_parent()
    if os.getppid() != launcher:
        os.kill(os.getpid(), signal.SIGKILL)
    relay.restore()
    as_inherited()


def _own_stdin(target: Target) -> AbstractContextManager[IO[bytes] | None]:
    return kept_stdin() if target.kind == "stdin" else nullcontext()


def die_by(number: int) -> None:
    """End this process by the signal that ended the program, so that a shell sees the same."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        pass
    # The numbers that the C library keeps for itself cannot be set, and end us all the same.
    with suppress(ValueError, OSError):
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
