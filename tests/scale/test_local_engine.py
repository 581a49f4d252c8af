"""The local pool: real worker processes, which die, hang and grow."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.scale.jobs.job import Finished, Job, JobLimits, JobProgress, JobResult
from compilescope.scale.jobs.local_engine import Devices, LocalEngine
from gone import is_gone
from scale.quick_tasks import make


def _run(jobs: list[Job], workers: int = 2, **more) -> dict[str, JobResult]:
    with LocalEngine(workers, **more) as engine:
        found = [finished.result for finished in engine.run(jobs, lambda progress: None)]
    assert Counter(result.name for result in found) == Counter(job.name for job in jobs)
    return {result.name: result for result in found}


def test_bad_jobs_do_not_touch_the_others(tmp_path: Path) -> None:
    bad = [
        make("killed", "die", signal=int(signal.SIGKILL)),
        make("segfault", "die", signal=int(signal.SIGSEGV)),
        make("once", "die_once", file=str(tmp_path / "once")),
        make("stuck", "sleep", JobLimits(seconds=0.5), seconds=600),
        make("raises", "fail", kind="value"),
        make("gpu", "echo", gpus=64),
    ]
    good = [make(f"good {number}", "echo", number=number) for number in range(6)]
    found = _run([*bad[:3], *good, *bad[3:]], task_seconds=0.5)
    assert [found[job.name].state for job in good] == ["ok"] * 6
    assert [found[job.name].value for job in good] == [{"number": n} for n in range(6)]
    states = {job.name: (found[job.name].state, found[job.name].attempts) for job in bad}
    assert states == {
        "killed": ("crashed", 2),
        "segfault": ("crashed", 2),
        "once": ("ok", 2),
        "stuck": ("timeout", 1),
        "raises": ("failed", 1),
        "gpu": ("failed", 1),
    }
    assert "SIGSEGV" in found["segfault"].reason
    assert found["gpu"].reason.startswith("Needs 64 GPUs; ")
    # The program of the worker that was killed.
    value = found["once"].value
    assert value is not None
    assert is_gone(value["child"])


def test_jobs_are_taken_only_when_there_is_room() -> None:
    taken: list[str] = []

    def jobs() -> Iterator[Job]:
        for number in range(12):
            taken.append(str(number))
            yield make(str(number), "echo")

    with LocalEngine(2) as engine:
        ended = 0
        for _ in engine.run(jobs(), lambda progress: None):
            ended += 1
            assert len(taken) <= ended + 2
    assert ended == 12


def test_progress_names_what_runs() -> None:
    heard: list[JobProgress] = []
    with LocalEngine(1) as engine:
        list(engine.run([make("a", "echo"), make("b", "echo")], heard.append))
        here = engine.machines()[0].name
    assert heard[0] == JobProgress(done=0, running=(("a", here),), queued=None)
    assert heard[-1] == JobProgress(done=2, running=(), queued=0)


def test_an_interrupt_ends_what_runs_as_cancelled(tmp_path: Path) -> None:
    """Ctrl-C comes when the first job's program is up."""
    pids = tmp_path / "pids"
    code = (
        f"import os, time; open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n'); time.sleep(600)"
    )
    jobs = [make("a", "program", code=code), make("b", "program", code=code), make("c", "echo")]

    def heard(progress: JobProgress) -> None:
        if pids.exists() and len(pids.read_text().split()) == 2:
            raise KeyboardInterrupt

    ended: list[Finished] = []
    with LocalEngine(2) as engine, pytest.raises(KeyboardInterrupt):
        for finished in engine.run(jobs, heard):
            ended.append(finished)
    assert [(each.result.name, each.result.state) for each in ended] == [
        ("a", "cancelled"),
        ("b", "cancelled"),
    ]
    assert all(is_gone(int(pid)) for pid in pids.read_text().split())


def test_leaving_the_results_ends_what_runs(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    jobs = [make("a", "program", code=code), make("b", "after", file=str(mark)), make("c", "echo")]
    with LocalEngine(2) as engine:
        first = next(iter(engine.run(jobs, lambda progress: None)))
        assert first.result.name == "b"
    assert is_gone(int(mark.read_text()))


def test_workers_that_cannot_start_are_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "python3" in entry][:1])
    with LocalEngine(1) as engine, pytest.raises(ToolError, match="Cannot start a worker"):
        list(engine.run([make("a", "echo")], lambda progress: None))


def test_a_file_of_the_user_hides_no_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError")
    (tmp_path / "psutil.py").write_text("raise RuntimeError")
    monkeypatch.chdir(tmp_path)
    assert _run([make("a", "echo")])["a"].state == "ok"


def test_devices_are_lent_whole_or_in_parts() -> None:
    devices = Devices(3, {"CUDA_VISIBLE_DEVICES": "4,5,6"})
    assert devices.take(0) == ()
    assert devices.take(2) == ("4", "5")
    assert devices.take(2) is None
    assert devices.take(0.5) == ("6",)
    assert devices.take(0.5) == ("6",)
    assert devices.take(0.5) is None
    devices.give_back(("4", "5"), 2)
    assert devices.take(1) == ("4",)
    assert Devices(2, {"CUDA_VISIBLE_DEVICES": ""}).count == 0
    assert Devices(2, {}).take(2) == ("0", "1")
