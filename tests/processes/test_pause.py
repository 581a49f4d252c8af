"""Ctrl-Z of a command: what it runs stops and continues with it, and no limit runs meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compilescope.minify.sandbox import Sandbox, TaskResult
from compilescope.processes import deadline
from compilescope.processes.deadline import Deadline, clock, note_pause, pauses
from waiting import until

COMMAND = """
import os, sys
from pathlib import Path
from compilescope.cli.signals import ended_in_order
from compilescope.processes.guard import children
from compilescope.processes.child import run_process

code = "import os, time; p = os.fork(); time.sleep(1); p and os.waitpid(p, 0)"

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
