"""Signals reach the program once, its end is ours, and a violent end leaves a run that opens."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.processes.table import is_running
from recorder.harness import (
    PROGRAMS,
    TIMEOUT,
    captured_command,
    environment,
    finish,
    show,
    start,
    wait_until,
)

pytestmark = pytest.mark.torch

EARLY_LINE = 15
"""Where waiting.py breaks before anything happens to it."""


def begin(home: Path, how: str) -> tuple[subprocess.Popen[bytes], int, bytes]:
    """The launcher, the program's own pid, and what the program has said when it is ready."""
    # A group of its own, as a shell makes one: our signals must not reach the test session.
    launcher = start(captured_command(home, "-q", "waiting.py", how), start_new_session=True)
    assert launcher.stdout is not None
    said = b""
    while b"ready" not in said:
        line = launcher.stdout.readline()
        assert line, finish(launcher).stderr.decode()
        said += line
    return launcher, int(said.split()[-1]), said


def assert_opens_cut_short(home: Path) -> dict[str, Any]:
    seen = show(home)
    assert seen["cut_short"], seen["cut_short_reason"]
    assert not seen["live"]
    assert seen["unread"] == 0
    assert [site["line"] for site in seen["sites"]] == [EARLY_LINE]
    assert seen["graphs"] == 1
    return seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status", "words"),
    [(signal.SIGINT, 7, b"interrupted\n"), (signal.SIGTERM, 9, b"terminated\n")],
    ids=["int", "term"],
)
def test_signal_to_the_launcher_reaches_the_program(
    tmp_path: Path, number: signal.Signals, status: int, words: bytes
) -> None:
    launcher, _, _ = begin(tmp_path, "handler")
    os.kill(launcher.pid, number)
    ended = finish(launcher)
    assert (ended.status, ended.stdout, ended.stderr) == (status, words, b"")
    seen = show(tmp_path)
    assert (seen["exit_status"], seen["cut_short"]) == (status, False)


def test_signals_to_the_launcher_are_handled_or_end_the_program(tmp_path: Path) -> None:
    launcher, _, _ = begin(tmp_path, "default")
    os.kill(launcher.pid, signal.SIGINT)
    assert launcher.stdout is not None and launcher.stdout.readline() == b"interrupted\n"
    os.kill(launcher.pid, signal.SIGTERM)
    ended = finish(launcher)
    assert (ended.status, ended.stdout, ended.stderr) == (-signal.SIGTERM, b"", b"")
    assert assert_opens_cut_short(tmp_path)["signal"] == signal.SIGTERM


def test_signal_to_the_group_is_not_doubled(tmp_path: Path) -> None:
    # What `timeout` and many job runners do: the program has the signal already.
    launcher, _, _ = begin(tmp_path, "count")
    os.killpg(launcher.pid, signal.SIGUSR1)
    ended = finish(launcher)
    assert (ended.status, ended.stdout) == (7, b"signals 1\n")


@pytest.mark.slow
def test_program_killed(tmp_path: Path) -> None:
    launcher, pid, _ = begin(tmp_path, "default")
    os.kill(pid, signal.SIGKILL)
    ended = finish(launcher)
    assert (ended.status, ended.stdout, ended.stderr) == (-signal.SIGKILL, b"", b"")
    assert assert_opens_cut_short(tmp_path)["signal"] == signal.SIGKILL


@pytest.mark.slow
def test_segfault(tmp_path: Path) -> None:
    launcher, _, _ = begin(tmp_path, "segfault")
    ended = finish(launcher)
    assert (ended.status, ended.stderr) == (-signal.SIGSEGV, b"")
    assert assert_opens_cut_short(tmp_path)["signal"] == signal.SIGSEGV


def test_launcher_and_program_killed(tmp_path: Path) -> None:
    launcher, _, _ = begin(tmp_path, "default")
    before = show(tmp_path)
    assert (before["live"], before["cut_short"]) == (True, False)
    os.killpg(launcher.pid, signal.SIGKILL)
    finish(launcher)
    seen = assert_opens_cut_short(tmp_path)
    assert (seen["exit_status"], seen["signal"]) == (None, None)
    assert seen["events"] == before["events"]


@pytest.mark.parametrize(
    "number", [signal.SIGIO, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 6, 14, 29, 40))]
)
def test_any_signal_to_the_launcher_is_the_programs(tmp_path: Path, number: int) -> None:
    status, pid = signal_launcher(tmp_path, number)
    assert status == -number
    assert not is_running(pid)


def test_a_killed_launcher_takes_the_program_along(tmp_path: Path) -> None:
    """Without us the program is what would have been killed."""
    status, pid = signal_launcher(tmp_path, signal.SIGKILL)
    assert status == -signal.SIGKILL
    wait_until(lambda: not is_running(pid), "the program's end")
    seen = show(tmp_path)
    assert (seen["live"], seen["cut_short"]) == (False, True)


def signal_launcher(home: Path, number: int) -> tuple[int, int]:
    """The launcher's status, and the pid of its program, which waits."""
    code = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    launcher = start(captured_command(home, "-q", "-c", code), start_new_session=True)
    assert launcher.stdout is not None
    pid = int(launcher.stdout.readline())
    os.kill(launcher.pid, number)
    return finish(launcher).status, pid


def test_where_child_signals_are_ignored_the_status_is_the_programs(tmp_path: Path) -> None:
    """As some supervisors start what they run; the program finds them ignored, as it would."""
    code = "import signal; print(int(signal.getsignal(signal.SIGCHLD))); raise SystemExit(7)"
    words = captured_command(tmp_path, "-q", "-c", code)
    ignoring = start(words, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    ended = finish(ignoring)
    assert (ended.status, ended.stdout, ended.stderr) == (7, b"1\n", b"")


def test_ctrl_c_at_a_terminal_interrupts_once(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        # The child of a fork in a test session may only become something else.
        os.chdir(PROGRAMS)
        command = captured_command(tmp_path, "-q", "waiting.py", "uncompiled")
        os.execve(sys.executable, command, environment())
    said = read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    said += read_until(terminal, None)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 7
    assert said.count(b"interrupted") == 1
    assert b"Traceback" not in said
    assert not show(tmp_path)["cut_short"]


SHELL = """
import os, signal, sys
# As a shell with job control starts a job in the foreground.
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, sys.argv[1:])
for _ in range(2):
    _, status = os.waitpid(job, os.WUNTRACED)
    print("stopped by", os.WSTOPSIG(status), flush=True)
    os.CONTINUE(job, signal.SIGCONT)
_, status = os.waitpid(job, 0)
os.tcsetpgrp(0, os.getpgrp())
print("status", os.waitstatus_to_exitcode(status), flush=True)
"""
STOPPED = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})
for which in "first", "second":
    print(which, "time", flush=True)
    signal.sigwait({signal.SIGCONT})
    time.sleep(PAUSE)
raise SystemExit(7)
"""


# By `fg` or by `kill -CONT` of the job's process; the second Ctrl-Z at once, or while the launcher
# still asks for whom the first continuation was meant.
@pytest.mark.parametrize("pause", [0, 0.005])
@pytest.mark.parametrize("way", ["killpg", "kill"])
def test_ctrl_z_stops_the_job_as_a_shell_sees_it_without_us(
    tmp_path: Path, way: str, pause: float
) -> None:
    program = STOPPED.replace("PAUSE", str(pause))
    captured = captured_command(tmp_path, "-q", "-c", program)
    plain = [sys.executable, "-c", program]
    assert stopped_at_a_terminal(captured, way) == stopped_at_a_terminal(plain, way)


def stopped_at_a_terminal(command: list[str], way: str) -> list[bytes]:
    """The words at a terminal where a command is stopped twice, as by Ctrl-Z, and continued."""
    pid, terminal = pty.fork()
    if pid == 0:
        shell = SHELL.replace("CONTINUE", way)
        os.execve(sys.executable, [sys.executable, "-c", shell, *command], environment())
    said = read_until(terminal, b"first time\r\n")
    os.write(terminal, b"\x1a")
    said += read_until(terminal, b"second time\r\n")
    os.write(terminal, b"\x1a")
    said += read_until(terminal, None)
    os.waitpid(pid, 0)
    os.close(terminal)
    assert b"status 7" in said
    return said.replace(b"^Z", b"").split()


def read_until(terminal: int, words: bytes | None) -> bytes:
    """What the terminal shows up to `words`, or up to the end."""
    said = b""
    deadline = time.monotonic() + TIMEOUT
    # A terminal whose last process has left reads as an error, not as an end.
    with contextlib.suppress(OSError):
        while words is None or words not in said:
            assert time.monotonic() < deadline, said
            part = os.read(terminal, 4096)
            if not part:
                break
            said += part
    return said
