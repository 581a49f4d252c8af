"""Ctrl-Z of a command: what it runs stops and continues with it, and no limit runs meanwhile."""

from __future__ import annotations

import json
import os
import pty
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from compilescope.base.processes import deadline
from compilescope.base.processes.deadline import Deadline, clock, note_pause, pauses
from compilescope.change.minify.sandbox import Sandbox, TaskResult
from compilescope.measure.bench.protocol import RunTime
from compilescope.measure.bench.worker_process import WorkerProcess
from waiting import until

COMMAND = r"""
import os, sys
from pathlib import Path
from compilescope.apps.cli.progress import ended_in_order
from compilescope.base.processes.guard import children
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
    program, guard = map(int, (tmp_path / "pids").read_text().split())
    command.send_signal(signal.SIGTSTP)
    until(lambda: _state(command.pid) == "T" and _state(program) == "T")
    assert _state(guard) != "T", "it must notice if the command is killed now"
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
    """Seconds to add to the clock."""
    added = [0.0]
    real = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + added[0])
    monkeypatch.setattr(deadline, "_stopped_s", 0.0)
    return added


def test_no_limit_runs_while_a_command_is_stopped(passing: list[float]) -> None:
    limit = Deadline(100)
    before, begun = pauses(), clock()
    passing[0] += 1000
    assert limit.is_over and clock() - begun >= 1000
    note_pause(1000)
    assert not limit.is_over and clock() - begun < 1000 and pauses() == before + 1


def test_a_task_that_was_stopped_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm process keeps its time, and cannot know."""
    answers = [TaskResult("timeout"), TaskResult("done", 1)]

    def run(*_: object) -> TaskResult:
        if len(answers) == 2:
            note_pause(0.0)
        return answers.pop(0)

    with Sandbox() as sandbox:
        monkeypatch.setattr(sandbox, "_run", run)
        assert sandbox.run("any:task").is_done
        answers[:] = [TaskResult("timeout")]
        assert sandbox.run("any:task").status == "timeout"


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
    assert _state(program) == "T"
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


class _LateReplies:
    """A queue whose answer comes after a pause of the whole command."""

    def __init__(self, passing: list[float], paused_s: float) -> None:
        self._passing = passing
        self._paused_s = paused_s
        self.timeouts: list[float] = []

    def get(self, *, timeout: float) -> bytes:
        self.timeouts.append(timeout)
        if len(self.timeouts) > 1:
            return b'{"value": {"ms": 1.5}}\n'
        self._passing[0] += timeout
        note_pause(self._paused_s)
        raise queue.Empty


@pytest.mark.parametrize("paused_s", [600.0, 0.0])
def test_an_answer_may_come_after_a_pause(passing: list[float], paused_s: float) -> None:
    """The limit of a benchmark's process, which is kept here, does not run while all is stopped."""
    worker = object.__new__(WorkerProcess)
    worker.limit_s = 600.0
    replies = _LateReplies(passing, paused_s)
    worker._replies = replies  # type: ignore[assignment]
    if not paused_s:
        assert worker._reply() is None
        return
    assert worker.hear("run", RunTime).ms == 1.5
    assert replies.timeouts[1] > 500, "the limit begins where the pause began"
