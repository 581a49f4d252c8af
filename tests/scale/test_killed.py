"""Drivers and workers that are killed with SIGKILL: nothing lost, nothing doubled, nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from compilescope.scale.jobs.local_engine import LocalEngine
from compilescope.scale.jobs.schedule import run_jobs
from compilescope.scale.jobs.store import Store, plan_of
from gone import is_gone
from scale.quick_tasks import make
from waiting import until

_DRIVER = Path(__file__).with_name("killed_driver.py")
pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def _start(store: Path, file: Path, count: int, gate: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(_DRIVER), str(store), str(file), str(count), str(gate)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _open(gate: Path, count: int) -> None:
    """Only so many jobs come to their end: who is killed there was busy with the next ones."""
    (gate.parent / "new").write_text(" ".join(f"job-{number}" for number in range(count)))
    (gate.parent / "new").rename(gate)


def test_a_driver_that_is_killed_again_and_again(tmp_path: Path) -> None:
    store, file, gate, count = tmp_path / "store", tmp_path / "ran", tmp_path / "gate", 12
    file.touch()
    done: list[frozenset[str]] = [frozenset()]
    runs: list[Counter[str]] = []
    notes = ""
    while len(done[-1]) < count:
        _open(gate, 3 * len(done) if len(done) < 4 else count)
        with _start(store, file, count, gate) as driver:
            assert driver.stdout is not None
            lines = []
            for line in driver.stdout:
                lines.append(line)
                if len(lines) == 3 and len(done) < 4:
                    tree = psutil.Process(driver.pid).children(recursive=True)
                    driver.kill()
                    driver.wait()
                    assert is_gone(*(process.pid for process in tree))
                    break
            else:
                notes = "".join(line for line in lines if line.startswith("note"))
        done.append(Store(str(store)).names())
        assert done[-2] < done[-1]
        ran = Counter(file.read_text().split())
        runs.append(ran)
        again = {name for name in ran if ran[name] > (runs[-2][name] if len(runs) > 1 else 0)}
        assert not again & done[-2], "a finished job ran again"
    assert done[-1] == {f"job-{number}" for number in range(count)}
    assert set(runs[-1]) == done[-1]
    assert "Took over the store" in notes
    assert [len(names) for names in done] == [0, 3, 6, 9, 12]


def test_ctrl_c_stores_no_job_that_it_ended(tmp_path: Path) -> None:
    store, file, gate = tmp_path / "store", tmp_path / "ran", tmp_path / "gate"
    file.touch()
    _open(gate, 3)
    with _start(store, file, 50, gate) as driver:
        assert driver.stdout is not None
        lines = [driver.stdout.readline().split() for _ in range(3)]
        tree = [child.pid for child in psutil.Process(driver.pid).children(recursive=True)]
        driver.send_signal(signal.SIGINT)
        lines += [line.split() for line in driver.stdout]
    assert driver.returncode != 0
    assert is_gone(*tree)
    ended = {name for name, state in lines if state == "ok"}
    cancelled = {name for name, state in lines if state == "cancelled"}
    assert len(ended) + len(cancelled) == len(lines)
    assert ended == Store(str(store)).names() and len(ended) == 3
    assert not cancelled & Store(str(store)).names()
    assert not (store / "lease.json").exists()


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "ran"
    names = [str(number) for number in range(12)]
    jobs = [make(name, "note", name=name, file=str(file)) for name in names]
    before = set(psutil.Process().children())
    with LocalEngine(3) as engine, Store(str(tmp_path / "store")) as store:
        store.begin(plan_of(jobs, {}))
        killed = False
        for result in run_jobs(jobs, engine, store, lambda progress: None):
            assert result.state == "ok"
            if not killed:
                (set(psutil.Process().children()) - before).pop().kill()
                killed = True
        assert store.names() == set(names)
    assert set(file.read_text().split()) == set(names)


def test_nothing_is_left_of_a_killed_driver(tmp_path: Path) -> None:
    """Its programs and their children neither, nor the jobs' folders."""
    pids, folders = tmp_path / "pids", tmp_path / "temporary"
    folders.mkdir()
    inner = f"import os, time; open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    code = (
        "import subprocess, sys"
        f"; subprocess.Popen([sys.executable, '-c', {inner!r}], start_new_session=True); {inner}"
    )
    driver = (
        "from compilescope.scale.jobs.local_engine import LocalEngine\n"
        "from scale.quick_tasks import make\n"
        f"jobs = [make(name, 'program', code={code!r}) for name in 'ab']\n"
        "with LocalEngine(2) as engine: list(engine.run(jobs, lambda progress: None))"
    )
    here = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": here, "TMPDIR": str(folders)}
    with subprocess.Popen([sys.executable, "-c", driver], env=environment) as process:
        until(lambda: pids.exists() and len(pids.read_text().split()) == 4)
        assert process.poll() is None
        tree = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
        os.kill(process.pid, signal.SIGKILL)
    assert is_gone(*tree, *map(int, pids.read_text().split()))
    until(lambda: not list(folders.iterdir()))
