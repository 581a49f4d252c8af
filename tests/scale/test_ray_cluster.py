"""The Ray engine on a real cluster of three worker nodes, whose parts are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from compilescope.base.errors import ToolError
from compilescope.base.processes.table import is_running
from compilescope.scale.jobs.job import Finished, Job, JobLimits, JobProgress, JobResult
from compilescope.scale.jobs.local_engine import LocalEngine
from compilescope.scale.jobs.ray_engine import RayEngine
from compilescope.scale.jobs.store import Store
from scale.quick_tasks import make
from scale.ray_cluster import (
    TestCluster,
    cluster,
    environment,
    ray_workers,
    start_driver,
    wait_for,
)

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
]


@pytest.fixture(scope="module")
def three() -> Iterator[TestCluster]:
    with cluster(3) as opened:
        yield opened


def _results(finished: Iterator[Finished]) -> dict[str, JobResult]:
    found = [each.result for each in finished]
    assert max(Counter(result.name for result in found).values()) == 1
    return {result.name: result for result in found}


def _nothing(progress: JobProgress) -> None: ...


def test_the_same_as_the_local_engine(three: TestCluster, tmp_path: Path) -> None:
    jobs = [
        make("echo", "echo", number=1),
        make("kept", "keep"),
        make("raises", "fail", kind="value"),
        make("tool", "fail", kind="tool"),
        make("no module", "none_such"),
        make("no verdict", "nothing"),
        make("prints", "program", code="print('out')"),
        make("exits", "program", code="raise SystemExit(3)"),
        make("slow", "program", JobLimits(seconds=0.5), code="import time; time.sleep(600)"),
        make(
            "large",
            "program",
            JobLimits(memory_bytes=100 << 20),
            code="import time; x = bytearray(300 << 20); time.sleep(600)",
        ),
        make("segfault", "program", code="import os; os.abort()"),
        make("dies", "die", signal=int(signal.SIGSEGV)),
        make("gpu", "echo", gpus=64),
    ]
    with LocalEngine(2) as local:
        here = [*local.run(jobs, _nothing)]
    with RayEngine(three.address) as engine:
        there = [*engine.run(jobs, _nothing)]
        names = {machine.name for machine in engine.machines()}
    assert len(names) == 3
    assert {each.result.name: each.archive for each in here} == {
        each.result.name: each.archive for each in there
    }
    one, other = _results(iter(here)), _results(iter(there))
    for job in jobs:
        if job.name != "gpu":
            assert _facts(other[job.name]) == _facts(one[job.name])
            assert other[job.name].machine in names
    assert other["gpu"].state == one["gpu"].state == "failed"
    assert other["gpu"].reason == "Needs 1 CPUs and 64 GPUs; the largest node has 2 and 0."


def _facts(result: JobResult) -> tuple[object, ...]:
    value = {key: each for key, each in (result.value or {}).items() if key != "folder"}
    return result.state, result.reason, value, result.attempts


def test_jobs_are_taken_only_when_there_is_room(three: TestCluster) -> None:
    taken: list[str] = []
    heard: list[JobProgress] = []

    def jobs() -> Iterator[Job]:
        for number in range(60):
            taken.append(str(number))
            yield make(str(number), "sleep", seconds=0.05)

    with RayEngine(three.address) as engine:
        ended = 0
        for _ in engine.run(jobs(), heard.append):
            ended += 1
            # Six places, and one that waits for the next of them.
            assert len(taken) <= ended + 7
    assert ended == 60
    assert max(len(progress.running) for progress in heard) == 6
    assert len({machine for progress in heard for _, machine in progress.running}) == 3
    assert heard[-1].done == 60
    with RayEngine(three.address, jobs=2) as engine:
        list(engine.run([make(name, "echo") for name in "abcdef"], heard.append))
    assert all(len(progress.running) <= 2 for progress in heard[-6:])


def test_a_worker_that_is_killed(three: TestCluster, tmp_path: Path) -> None:
    """Killed once, its job runs again; killed each time, it is lost. Its programs end with it."""
    pids = tmp_path / "pids"
    code = f"import os, time; open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    jobs = [make("victim", "program", code=code), *(make(name, "echo") for name in "abc")]

    def kill_three_times() -> None:
        for count in range(1, 4):
            wait_for(lambda n=count: pids.exists() and len(pids.read_text().split()) >= n)
            program = psutil.Process(int(pids.read_text().split()[-1]))
            program.parents()[1].kill()  # The first is our worker, which Ray's has started.

    killer = threading.Thread(target=kill_three_times)
    killer.start()
    with RayEngine(three.address) as engine:
        found = _results(engine.run(jobs, _nothing))
    killer.join()
    assert [found[name].state for name in "abc"] == ["ok"] * 3
    assert (found["victim"].state, found["victim"].attempts) == ("lost", 3)
    assert found["victim"].reason.startswith("Its node or Ray worker died 3 times. The last time,")
    wait_for(lambda: not any(map(is_running, map(int, pids.read_text().split()))), 10)


def test_a_node_that_dies_and_one_that_joins(
    three: TestCluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The jobs come until both have been noticed."""
    file = tmp_path / "ran"
    fourth = three.add()
    engine = RayEngine(three.address)

    def jobs() -> Iterator[Job]:
        for number in range(1000):
            problems = [machine.problem for machine in engine.machines()]
            if problems.count("") == 4 and len(problems) == 5 and used() == 5:
                return
            name = f"job-{number}"
            yield make(name, "note", name=name, file=str(file), seconds=0.3)

    def used() -> int:
        return len({result.machine for result in found})

    found: list[JobResult] = []
    with engine:
        capfd.readouterr()
        for finished in engine.run(jobs(), _nothing):
            found.append(finished.result)
            if len(found) == 6:
                three.kill(fourth)
                three.add()
        said = capfd.readouterr()
    assert {result.state for result in found} == {"ok"}
    assert len({result.name for result in found}) == len(found)
    problems = {machine.name: machine.problem for machine in engine.machines()}
    assert sorted(problems.values()) == ["", "", "", "", "Died during the sweep."]
    assert {result.machine for result in found} >= {n for n, each in problems.items() if not each}
    ran = Counter(file.read_text().split())
    assert set(ran) == {result.name for result in found}
    assert all(ran[result.name] <= result.attempts for result in found)
    assert "(raylet)" not in said.out, "Ray speaks to standard output"


def test_a_driver_that_is_killed_and_resumes(three: TestCluster, tmp_path: Path) -> None:
    store, file, count = tmp_path / "store", tmp_path / "ran", 40
    file.touch()
    driver = str(Path(__file__).with_name("ray_driver.py"))
    done: list[frozenset[str]] = [frozenset()]
    ran: list[Counter[str]] = [Counter()]
    while len(done[-1]) < count:
        assert len(done) < 6
        with start_driver(driver, three.address, str(store), str(file), str(count)) as process:
            assert process.stdout is not None
            for number, line in enumerate(process.stdout):
                assert line.endswith(" ok\n")
                if number == 10 and len(done) < 3:
                    process.kill()
                    break
        wait_for(lambda: not ray_workers(), 20)
        done.append(Store(str(store)).names())
        ran.append(Counter(file.read_text().split()))
        assert done[-2] < done[-1]
        again = {name for name in ran[-1] if ran[-1][name] > ran[-2][name]}
        assert not again & done[-2], "a finished job ran again"
    assert len(done) > 3
    assert done[-1] == set(ran[-1]) == {f"job-{number}" for number in range(count)}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_driver(three: TestCluster, tmp_path: Path, sent: int) -> None:
    pids = tmp_path / "pids"
    inner = f"import os, time; open({str(pids)!r}, 'a').write(f'{{os.getpid()}} '); time.sleep(600)"
    code = (
        "import subprocess, sys"
        f"; subprocess.Popen([sys.executable, '-c', {inner!r}], start_new_session=True); {inner}"
    )
    driver = (
        "from compilescope.scale.jobs.ray_engine import RayEngine\n"
        "from scale.quick_tasks import make\n"
        f"jobs = [make(name, 'program', code={code!r}) for name in 'abc']\n"
        f"with RayEngine({three.address!r}) as engine:\n"
        "    for each in engine.run(jobs, lambda progress: None):\n"
        "        print(each.result.name, each.result.state, flush=True)"
    )
    with start_driver("-c", driver, stderr=subprocess.DEVNULL) as process:
        wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 6)
        os.kill(process.pid, sent)
        assert process.stdout is not None
        said = process.stdout.read()
    assert said == ("a cancelled\nb cancelled\nc cancelled\n" if sent == signal.SIGINT else "")
    wait_for(lambda: not any(map(is_running, map(int, pids.read_text().split()))), 20)


def test_gpus_are_given_out_by_ray(three: TestCluster) -> None:
    """The devices are Ray's word alone: there are none here."""
    node = three.add(num_gpus=2)
    code = "import os, time; time.sleep(1); print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
    jobs = [make(name, "program", gpus=1, code=code) for name in "ab"]
    jobs += [make("both", "program", gpus=2, code=code), make("none", "program", code=code)]
    jobs += [make("many", "echo", gpus=3)]
    with RayEngine(three.address) as engine:
        found = _results(engine.run(jobs, _nothing))
    three.kill(node)
    said = {name: str((each.value or {}).get("stdout")).strip() for name, each in found.items()}
    assert {said["a"], said["b"]} == {"0", "1"}
    assert sorted(said["both"].split(",")) == ["0", "1"]
    assert said["none"] == "None"
    assert found["many"].reason == "Needs 1 CPUs and 3 GPUs; the largest node has 2 and 2."


def test_the_folder_is_sent_to_the_nodes(three: TestCluster, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("from the folder")
    jobs = [make(name, "program", code="print(open('data.txt').read())") for name in "abcdef"]
    with RayEngine(three.address, working_dir=tmp_path) as engine:
        found = _results(engine.run(jobs, _nothing))
    said = {(each.value or {}).get("stdout") for each in found.values()}
    assert said == {"from the folder\n"}


def test_a_cluster_of_another_ray(three: TestCluster) -> None:
    code = (
        "import ray; ray.__version__ = '1.0.0'\n"
        "from compilescope.base.errors import ToolError\n"
        "from compilescope.scale.jobs.ray_engine import RayEngine\n"
        f"try: RayEngine({three.address!r}).__enter__()\n"
        "except ToolError as error: print(error.message, error.hint)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
    )
    assert ran.stdout.startswith(f"The Ray cluster at {three.address} has other versions: ")
    assert "1.0.0" in ran.stdout


def test_auto_finds_the_cluster(three: TestCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", three.address)
    with RayEngine("auto") as engine:
        assert len(engine.machines()) >= 3


def test_the_head_dies() -> None:
    """After all others: it ends this cluster. In a process of its own, which Ray might end."""
    code = (
        "from compilescope.base.errors import ToolError\n"
        "from compilescope.scale.jobs.ray_engine import RayEngine\n"
        "from scale.quick_tasks import make\n"
        "from scale.ray_cluster import cluster\n"
        "def kill(progress):\n"
        "    if progress.done == 4: opened.kill_head()\n"
        "jobs = [make(str(n), 'sleep', seconds=0.2) for n in range(1000)]\n"
        "with cluster(2) as opened:\n"
        "    try:\n"
        "        with RayEngine(opened.address) as engine: list(engine.run(jobs, kill))\n"
        "    except ToolError as error: print('said:', error.message, error.hint)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), timeout=200
    )
    assert "said: The Ray cluster's head node has not answered for 20 s. " in ran.stdout, ran.stderr


def test_every_node_dies() -> None:
    with cluster(0) as opened:
        node = opened.add()
        jobs = [make(str(number), "sleep", seconds=0.2) for number in range(1000)]
        with RayEngine(opened.address) as engine:
            running = engine.run(jobs, _nothing)
            next(running)
            opened.kill(node)
            with pytest.raises(ToolError, match="no usable node for 30 s"):
                list(running)
        with pytest.raises(ToolError, match="The Ray cluster has no node with CPUs"):
            RayEngine(opened.address).__enter__()
