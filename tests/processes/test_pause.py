"""Ctrl-Z of a command: what it runs stops and continues with it, and no limit runs meanwhile."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from compilescope.base.processes import channel, deadline
from compilescope.base.processes.channel import Channel
from compilescope.base.processes.deadline import Deadline, clock, note_pause, pauses
from waiting import until

COMMAND = r"""
import os, sys
from pathlib import Path
from compilescope.apps.cli.progress import ended_in_order
from compilescope.base.processes.cleaner import children
from compilescope.base.processes.child import run_process

go = os.path.abspath("go")
code = "import os, time; p = os.fork()\n"
code += f"while not os.path.exists({go!r}): time.sleep(0.02)\n"
code += "p and os.waitpid(p, 0)"

def started(pid):
    Path("new").write_text(" ".join(map(str, (pid, *(children() - {pid})))))
    os.rename("new", "pids")

with ended_in_order(pausing=True):
    words = [sys.executable, "-c", code]
    ended = run_process(words, dict(os.environ), Path("."), limit_s=600, started=started)
Path("ended").write_text(f"{ended.status} {ended.timed_out}")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_children_stop_and_continue_with_their_command(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # A group of its own, as a shell gives it: the system stops no group that nobody watches.
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND], cwd=tmp_path, preexec_fn=lambda: os.setpgid(0, 0)
    )
    request.addfinalizer(command.kill)
    until((tmp_path / "pids").exists)
    program, cleaner = map(int, (tmp_path / "pids").read_text().split())
    command.send_signal(signal.SIGTSTP)
    until(lambda: _state(command.pid) == "T" and _state(program) == "T")
    assert _state(cleaner) != "T", "it must notice if the command is killed now"
    command.send_signal(signal.SIGCONT)
    (tmp_path / "go").touch()
    assert command.wait() == 0
    assert (tmp_path / "ended").read_text() == "0 False"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def test_what_is_killed_while_it_is_stopped_leaves_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if sys.platform != "linux":
        pytest.skip("looks into /proc")
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND], cwd=tmp_path, preexec_fn=lambda: os.setpgid(0, 0)
    )
    request.addfinalizer(command.kill)
    until((tmp_path / "pids").exists)
    pids = list(map(int, (tmp_path / "pids").read_text().split()))
    command.send_signal(signal.SIGTSTP)
    until(lambda: _state(command.pid) == "T")
    command.kill()
    command.wait()
    until(lambda: all(_state(pid) in "ZX" for pid in pids))


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds to add to the clock of deadlines and channels alone: servers of other tests may run
    in this process, and would sleep as long as it was put forward."""
    added = [0.0]
    ahead = SimpleNamespace(monotonic=lambda: time.monotonic() + added[0], time=time.time)
    for module in (channel, deadline):
        monkeypatch.setattr(module, "time", ahead)
    monkeypatch.setattr(deadline, "_stopped_s", 0.0)
    return added


def test_no_limit_runs_while_a_command_is_stopped(passing: list[float]) -> None:
    limit = Deadline(100)
    before, begun = pauses(), clock()
    passing[0] += 1000
    assert limit.is_over and clock() - begun >= 1000
    note_pause(1000)
    assert not limit.is_over and clock() - begun < 1000 and pauses() == before + 1


SHELL = """
import os, signal, sys
# As a shell with job control: it sees the job stop, and continues it (`fg`) when it is told.
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, sys.argv[1:])
_, status = os.waitpid(job, os.WUNTRACED)
assert os.WIFSTOPPED(status), status
open("stopped", "w").close()
while not os.path.exists("fg"):
    signal.sigtimedwait([], 0.05)
os.killpg(job, signal.SIGCONT)
_, status = os.waitpid(job, 0)
os.tcsetpgrp(0, os.getpgrp())
sys.exit(os.waitstatus_to_exitcode(status))
"""
PROGRAM = """
import os, time
if not os: import torch  # A sweep of a folder takes programs that use it.
from pathlib import Path
here = Path(__file__).parent.parent
(here / "new").write_text(str(os.getpid()))
os.rename(here / "new", here / "pid")
while not (here / "fg").exists():
    time.sleep(0.05)
"""
LIMIT_S = 15


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_sweep_that_is_stopped_at_a_terminal_has_no_timeouts(tmp_path: Path) -> None:
    """The worker processes keep the time of their programs."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "waits.py").write_text(PROGRAM)
    words = ["sweep", "programs", "--jobs", "1", "--limit", str(LIMIT_S), "--dir", "runs"]
    shell, terminal = pty.fork()
    if shell == 0:
        # The child of a fork in a test session may only become something else.
        os.chdir(tmp_path)
        command = [sys.executable, "-m", "compilescope", *words]
        os.execv(sys.executable, [sys.executable, "-c", SHELL, *command])
    shown: list[bytes] = []
    threading.Thread(target=_read_all, args=(terminal, shown), daemon=True).start()
    until((tmp_path / "pid").exists)
    program = int((tmp_path / "pid").read_text())
    os.write(terminal, b"\x1a")
    until((tmp_path / "stopped").exists)
    until(lambda: _state(program) == "T")  # Once it has its turn, on a busy machine.
    time.sleep(LIMIT_S + 1)  # Longer than its limit.
    assert _state(program) == "T"
    (tmp_path / "fg").touch()
    _, status = os.waitpid(shell, 0)
    assert os.waitstatus_to_exitcode(status) == 0, b"".join(shown).decode()
    listed = [sys.executable, "-m", "compilescope", "show", "--dir", "runs", "--json"]
    found = json.loads(subprocess.check_output(listed, cwd=tmp_path))
    assert [job["state"] for job in found["jobs"]] == ["ok"]
    assert found["jobs"][0]["seconds"] < LIMIT_S


def _read_all(terminal: int, shown: list[bytes]) -> None:
    while True:
        try:
            shown.append(os.read(terminal, 4096))
        except OSError:
            return  # Its last process has left.


@pytest.mark.parametrize("noted", [1, 2, 0], ids=["noted", "noted by another thread", "no pause"])
def test_an_answer_may_come_after_a_pause(
    passing: list[float], noted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of a worker, which is kept here, does not run while all is stopped."""
    ours, theirs = Channel.pair()
    real, looks = socket.recv_fds, []

    def receive(*given: Any) -> Any:
        looks.append(given)
        if len(looks) == 1:
            passing[0] += 700
        if len(looks) == noted:
            note_pause(700.0)
        if len(looks) <= 2:
            raise TimeoutError
        return real(*given)

    monkeypatch.setattr(socket, "recv_fds", receive)
    with ours, theirs:
        theirs.send(b"late")
        assert ours.receive(600.0) == (b"late" if noted else None)
