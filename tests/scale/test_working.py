"""One job: whatever its task does, there is one result, and nothing is left."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compilescope.base.processes.outcome import ProcessEnd
from compilescope.scale.jobs import work as working
from compilescope.scale.jobs.job import Finished, Job, JobLimits
from compilescope.scale.jobs.work import work
from gone import is_gone
from scale.quick_tasks import make


def _work(job: Job) -> Finished:
    return work(job, "here")


def test_a_result_has_what_the_task_returned() -> None:
    result = _work(make("a", "echo", x=[1, None])).result
    assert (result.state, result.value, result.machine) == ("ok", {"x": [1, None]}, "here")


def test_time_in_programs_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    times, run_program = iter([100.0, 107.0]), working.run_process

    def five_seconds(*words: Any, **limits: Any) -> ProcessEnd:
        return replace(run_program(*words, **limits), seconds=5.0)

    monkeypatch.setattr(working, "clock", lambda: next(times))
    monkeypatch.setattr(working, "run_process", five_seconds)
    result = _work(make("a", "program", command=["true"])).result
    assert (result.state, result.seconds, result.overhead_seconds) == ("ok", 5.0, 2.0)


@pytest.mark.parametrize(
    ("kind", "state", "reason"),
    [
        ("tool", "failed", "The tool says so."),
        ("value", "failed", "ValueError: first"),
        ("exit", "failed", "SystemExit: 3"),
        ("memory", "memory", "MemoryError"),
        ("unspeakable", "failed", "_Unspeakable"),
    ],
)
def test_a_task_that_raises(kind: str, state: str, reason: str) -> None:
    result = _work(make("a", "fail", kind=kind)).result
    assert (result.state, result.reason) == (state, reason)


@pytest.mark.parametrize("task", ["nothing", "no_json", "missing", "keep_elsewhere"])
def test_a_task_that_does_not_keep_to_the_rules_fails_alone(task: str) -> None:
    result = _work(make("a", task)).result
    assert result.state == "failed"
    assert result.reason


def test_a_module_that_is_not_there() -> None:
    result = _work(Job(name="a", task="no.such:thing")).result
    assert (result.state, result.reason) == ("failed", "ModuleNotFoundError: No module named 'no'")


@pytest.mark.parametrize(
    ("code", "limits", "state"),
    [
        ("import time; time.sleep(60)", JobLimits(seconds=0.3), "timeout"),
        (
            "import time; a = bytearray(400 * 10**6); time.sleep(60)",
            JobLimits(memory_bytes=10**8),
            "memory",
        ),
        ("import os; os.abort()", JobLimits(), "crashed"),
        ("raise SystemExit(4)", JobLimits(), "failed"),
    ],
)
def test_a_program_that_ends_badly(code: str, limits: JobLimits, state: str) -> None:
    result = _work(make("a", "program", limits, code=code)).result
    assert result.state == state
    assert result.reason


def test_what_is_kept_comes_as_an_archive_without_links() -> None:
    finished = _work(make("a", "keep"))
    with zipfile.ZipFile(io.BytesIO(finished.archive)) as archive:
        assert archive.namelist() == ["a.txt"]
    assert _work(make("a", "keep")).archive == finished.archive


def test_the_folder_is_removed() -> None:
    value = _work(make("a", "program", command=["true"])).result.value
    assert value is not None
    assert not Path(value["folder"]).parent.exists()


def test_a_folder_that_cannot_be_removed_fails_no_job() -> None:
    assert _work(make("a", "lock_folder")).result.state == "ok"


def test_a_machine_without_room_for_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    result = _work(make("a", "echo")).result
    assert result.state == "failed"
    assert result.reason.startswith("No folder for the job can be made on here: ")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans are found on Linux only")
def test_children_that_left_the_session_and_their_parent_are_ended() -> None:
    """In a process of its own: adopting orphans is for good."""
    inner = (
        "import subprocess; child = subprocess.Popen(['sleep', '600'], start_new_session=True)"
        "; print(child.pid, flush=True)"
    )
    outer = (
        "import subprocess, sys"
        f"; subprocess.run([sys.executable, '-c', {inner!r}], start_new_session=True)"
    )
    code = (
        "from scale.quick_tasks import make; from compilescope.scale.jobs.work import work"
        f"; job = make('a', 'program', code={outer!r})"
        "; print(work(job, 'here').result.value['stdout'])"
    )
    here = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": here}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert is_gone(int(done.stdout))
