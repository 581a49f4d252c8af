"""Starts the program as its own process and waits for it, transparently.

The program keeps the terminal, its streams, its signals and its exit status. The launcher writes
the run's header at the start and the end, and nothing in between.

Signals that are meant for the program reach it, each of them once. One typed at the terminal, or
sent to the whole process group, does so by itself. One sent to the launcher alone must be handed
on. The kernel says which were typed; for the rest a canary, a silent process of the same group,
shows whether it got the signal too. Where the program stops, as for Ctrl-Z, the launcher stops with
it, so that a shell sees its job stop.
"""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.processes.child_signal import as_inherited
from compilescope.base.processes.fork import die_with_parent
from compilescope.base.settings import Settings, child_environment
from compilescope.base.version import VERSION
from compilescope.instrument.recorder.stdin_source import kept_stdin
from compilescope.instrument.recorder.target import Target, python_flags
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, new_run_id
from compilescope.record.presence import begin_presence

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
    python, *words = target.command(functions)
    # torchrun starts its workers without them, and would be taken for one of these.
    flags = python_flags(sys.orig_argv) if target.kind != "torchrun" else []
    command = [python, *flags, *words]
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


_NOT_OURS = ("SIGKILL", "SIGSTOP", "SIGCHLD")
"""Those that nobody can hold back, and the one by which the program's end is known."""
_TYPED = ("SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGHUP", "SIGCONT", "SIGWINCH")
"""What a terminal sends, always to a whole group."""
_FROM_KERNEL = 128  # si_code of a signal typed at the terminal, on Linux
_GROUP_DELAY_S = 0.01
"""Chosen: far longer than the kernel needs to signal a group, and nobody waits for it."""
_LOOK_S = 0.05
"""Chosen: a stopped job that is continued does not seem late, and looking costs nothing to speak
of."""
_STOPPING = tuple(getattr(signal, name, 0) for name in ("SIGTSTP", "SIGTTIN", "SIGTTOU"))
"""By which a terminal stops a job; whoever stops a program otherwise controls it alone."""


class SignalRelay:
    """Holds back the launcher's signals from before the program starts until it has ended."""

    def __init__(self) -> None:
        kept = {getattr(signal, name, None) for name in _NOT_OURS}
        self._signals = {number for number in signal.valid_signals() if number not in kept}
        self._typed = {getattr(signal, name) for name in _TYPED if hasattr(signal, name)}
        self._before: set[int] = set()
        self._child_handler: Any = signal.SIG_DFL
        self._canary: _Canary | None = None
        self._waker = -1

    def __enter__(self) -> SignalRelay:
        blocked = self._signals | {signal.SIGCHLD}
        self._before = set(signal.pthread_sigmask(signal.SIG_BLOCK, blocked))
        # Where it is ignored, as some supervisors leave it, a child's status is never kept for us.
        self._child_handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if os.path.isdir("/proc/self"):
            self._canary = _Canary()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._canary is not None:
            self._canary.release()
        # What came too late to be handed on must not end us before the header is written.
        for number in self._signals & set(signal.sigpending()):
            signal.sigwait({number})
        self.restore()

    def restore(self) -> None:
        """What signals do as before, here or in the new process that becomes the program."""
        if self._child_handler is not None:  # None: not set from Python, and unknown to it.
            signal.signal(signal.SIGCHLD, self._child_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """The program's status, once it has ended."""
        if not hasattr(signal, "sigtimedwait"):
            self.restore()
            return _wait_without_senders(process)
        while (status := self._ended(process.pid)) is None:
            info = signal.sigtimedwait(self._signals | {signal.SIGCHLD}, 0.5)
            if info is not None and self._is_for_the_program(info):
                with suppress(ProcessLookupError):
                    os.kill(process.pid, info.si_signo)
        process.returncode = status
        return status

    def _is_for_the_program(self, info: signal.struct_siginfo) -> bool:
        if info.si_signo == signal.SIGCHLD and info.si_code > 0:
            return False  # A child of ours ended, stopped or continued.
        if info.si_code == _FROM_KERNEL and info.si_signo in self._typed:
            return False
        if info.si_pid == self._waker and info.si_signo == signal.SIGCONT:
            return False
        return self._canary is None or not self._canary.heard(info.si_signo)

    def _ended(self, pid: int) -> int | None:
        """The program's status as subprocess has it; None while there is none."""
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found == 0:
            return None
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        if os.WSTOPSIG(status) in _STOPPING and self._canary is not None:
            self._stop_along(pid, os.WSTOPSIG(status))
        return None

    def _stop_along(self, pid: int, number: int) -> None:
        """Until whoever controls the job lets us continue, or the program alone."""
        if self._canary is not None:
            self._canary.renew()  # What it heard so far stopped the program; now listen for more.
        self._waker = os.fork()
        if self._waker == 0:
            _wake_with(pid)
        _stop_by(number)
        os.kill(self._waker, signal.SIGKILL)
        os.waitpid(self._waker, 0)


def _stop_by(number: int) -> None:
    """By the signal that stopped the program: a shell says which it was."""
    if signal.getsignal(number) != signal.SIG_DFL:
        number = signal.SIGSTOP
    os.kill(os.getpid(), number)
    # It waited, held back as all are; it stops us here. SIGCONT clears it, and so it comes once.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number} - {signal.SIGSTOP})


def _wake_with(pid: int) -> NoReturn:
    """In a process beside the launcher, which has stopped: until the program no longer is."""
    launcher = os.getppid()
    while _is_stopped(pid) and os.getppid() == launcher:
        time.sleep(_LOOK_S)
    if os.getppid() == launcher:
        os.kill(launcher, signal.SIGCONT)
    os._exit(0)


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


class _Canary:
    """A process of our group that gets what the group gets, and keeps it pending."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            # All it ever does: wait for the launcher to let go of the pipe, or to die.
            os.close(self._writing)
            os.read(reading, 1)
            os._exit(0)
        os.close(reading)

    def heard(self, number: int) -> bool:
        """Did the whole group get this signal?"""
        time.sleep(_GROUP_DELAY_S)  # The kernel signals the members of a group one by one.
        try:
            with open(f"/proc/{self._pid}/status") as status:
                masks = [line for line in status if line.startswith(("SigPnd", "ShdPnd"))]
        except OSError:
            return False
        # A stop that follows a SIGCONT takes it back where it is still pending, as it is here.
        signs = (number, *_STOPPING) if number == signal.SIGCONT else (number,)
        pending = [int(mask.split()[1], 16) for mask in masks]
        got = any(mask >> (sign - 1) & 1 for mask in pending for sign in signs if sign)
        if got:
            self.renew()  # Pending signals of one kind do not add up: begin anew for the next.
        return got

    def renew(self) -> None:
        """As if it had heard nothing yet."""
        self.release()
        self.__init__()  # type: ignore[misc]

    def release(self) -> None:
        os.close(self._writing)
        os.kill(self._pid, signal.SIGKILL)  # It may have been stopped with its group.
        os.waitpid(self._pid, 0)


def _wait_without_senders(process: subprocess.Popen[bytes]) -> int:
    """Where a signal's sender cannot be known: leave Ctrl-C to the terminal, hand on the rest."""
    for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), lambda received, _: process.send_signal(received))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return process.wait()
