"""`compilescope bench` as a whole: turns, failures that cost one row, Ctrl-C, JSON, the run."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from bench.bench_programs import write_program

pytest.importorskip("torch")
pytest.importorskip("scipy")

from compilescope.base.processes.table import is_running
from compilescope.measure.bench.measurement import BenchStep, Method, ModelBench, rotated
from compilescope.measure.bench.protocol import BuiltReply, FirstCall, Spec
from compilescope.measure.bench.worker_process import WorkerFailed, WorkerProcess
from compilescope.record.benchmark import Benchmark, Machine
from compilescope.record.run import read_run

pytestmark = pytest.mark.torch

ISSUE = [
    "model",
    "backend",
    "mode",
    "parameters",
    "compile_seconds",
    "warm_compile_seconds",
    "latency_ms",
    "latency_std_ms",
    "latency_ci_ms",
    "throughput",
    "peak_bytes",
    "graphs",
    "breaks",
    "recompiles",
    "violations",
    "kerneldiff",
    "speedup",
    "speedup_ci",
]
MORE = [
    "latency_mean_ms",
    "latency_p90_ms",
    "device",
    "dtype",
    "batch",
    "outliers",
    "error",
    "notes",
    "runs_ms",
    "calls",
]


class Ended(NamedTuple):
    status: int
    answer: dict[str, Any]
    stderr: str
    home: Path
    log: list[list[str]]
    left: list[str]
    """In the folder for temporary files."""

    def row(self, backend: str) -> dict[str, Any]:
        return next(row for row in self.answer["results"] if row["backend"].endswith(backend))


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    temporary = folder / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "compilescope", "bench", *arguments]
    command += ["--dir", str(folder / "runs"), "--threads", "1", "--json", "--longer", "0"]
    env = {**os.environ, "TMPDIR": str(temporary)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=env, text=True, **pipes)


def finish(process: subprocess.Popen[str], folder: Path) -> Ended:
    try:
        out, err = process.communicate(timeout=280)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.communicate()
        raise
    log = [line.split() for line in (folder / "calls.log").read_text().splitlines()]
    left = [path.name for path in (folder / "tmp").iterdir() if "compilescope" in path.name]
    answer = json.loads(out) if out else {}
    return Ended(process.returncode, answer, err, folder / "runs", log, left)


def benched(folder: Path, *names: str) -> Ended:
    file, _ = write_program(folder)
    arguments = ["--model", f"{file}:build", "--runs", "4", "--processes", "1", "--no-examine"]
    for name in names:
        arguments += ["--backend", f"{file}:{name}"]
    return finish(start(folder, *arguments), folder)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """One backend that works, and one that raises."""
    return benched(tmp_path_factory.mktemp("small"), "raises", "one")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Two backends that work, one that raises and one that kills its process."""
    return benched(tmp_path_factory.mktemp("mixed"), "raises", "one", "dies", "two")


@pytest.mark.slow
def test_a_backend_that_fails_costs_only_its_own_row(mixed: Ended) -> None:
    assert mixed.status == 1, mixed.stderr
    assert "this backend compiles nothing" in mixed.row(":raises")["error"]
    died = mixed.row(":dies")["error"]
    assert "SIGKILL" in died and "while compiling" in died
    for name in ("eager", ":one", ":two"):
        row = mixed.row(name)
        assert row["error"] == "" and row["latency_ms"] > 0 and len(row["runs_ms"][0]) == 4
    for name in (":raises", ":dies"):
        row = mixed.row(name)
        assert row["latency_ms"] is None and row["runs_ms"] == [] and row["speedup"] is None


@pytest.mark.slow
def test_runs_take_turns(mixed: Ended) -> None:
    calls = sorted((int(begun), int(ended), pid) for _, pid, begun, ended in mixed.log)
    for (_, ended, pid), (begun, _, other) in itertools.pairwise(calls):
        assert pid == other or ended <= begun, "two processes worked at the same time"
    # Warm-up of one and two, then the rounds: eager one two, one two eager, two eager one,
    # eager one two, and peak memory of one and two. What stands together is one process' turn.
    turns = [name for name, _ in itertools.groupby(line[0] for line in mixed.log)]
    assert turns == ["one", "two"] * 5


def test_the_order_rotates() -> None:
    assert [rotated("abc", turn) for turn in range(4)] == [
        list(x) for x in ("abc", "bca", "cab", "abc")
    ]
    assert rotated([], 3) == []


def test_json_has_every_key_of_every_row(small: Ended) -> None:
    assert {"run", "machine", "results"} == set(small.answer)
    assert small.answer["machine"]["threads"] == 1
    for row in small.answer["results"]:
        assert {*ISSUE, *MORE} <= set(row)
    assert "this backend compiles nothing" in small.row(":raises")["error"]
    eager = small.row("eager")
    assert eager["too_noisy"] or eager["speedup_ci"] == [eager["speedup"]] * 2 == [1.0, 1.0]
    assert eager["compile_seconds"] is None and eager["kerneldiff"] == ""
    one = small.row(":one")
    # On a busy machine there may be no speed-up to tell.
    assert one["too_noisy"] or one["speedup_ci"][0] <= one["speedup"] <= one["speedup_ci"][1]
    assert one["latency_ci_ms"][0] <= one["latency_ms"] <= one["latency_ci_ms"][1]
    assert one["compile_seconds"] > 0 and one["warm_compile_seconds"] is None
    assert one["throughput"] == pytest.approx(32_000 / one["latency_ms"])
    assert one["parameters"] == 64 * 64 + 64 and one["batch"] == 32
    assert one["peak_bytes"] > 4 * one["parameters"]


def test_it_is_recorded_as_a_run(small: Ended) -> None:
    run = read_run(small.home / small.answer["run"])
    assert run.header.command[0] == "bench" and run.header.exit_status == 1
    assert run.header.ended_ns is not None and run.cut_short is None
    assert [body.threads for _, body in run.of(Machine)] == [1]
    rows = [body for _, body in run.of(Benchmark)]
    assert [row.backend.rpartition(":")[2] for row in rows] == ["eager", "raises", "one"]


def test_nothing_is_left_behind(small: Ended) -> None:
    assert small.left == []
    assert not [pid for pid in {line[1] for line in small.log} if is_running(int(pid))]


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_measured(tmp_path: Path) -> None:
    stopped(tmp_path, signal.SIGINT, 130)


@pytest.mark.slow
def test_kill_keeps_what_was_measured(tmp_path: Path) -> None:
    stopped(tmp_path, signal.SIGTERM, 143)


def stopped(folder: Path, number: signal.Signals, status: int) -> None:
    file, log = write_program(folder)
    arguments = ["--model", f"{file}:build", "--backend", f"{file}:one", "--runs", "100000"]
    process = start(folder, *arguments)
    wait_for_turns(process, log)
    process.send_signal(number)
    ended = finish(process, folder)
    assert ended.status == status, ended.stderr
    for name in ("eager", ":one"):
        row = ended.row(name)
        assert row["latency_ms"] > 0 and 3 <= len(row["runs_ms"][0]) < 100_000
        assert any(note.startswith("Stopped early") for note in row["notes"])
    header = read_run(ended.home / ended.answer["run"]).header
    assert header.exit_status == status and header.ended_ns is not None
    assert ended.left == []
    assert not [pid for pid in {line[1] for line in ended.log} if is_running(int(pid))]


def wait_for_turns(process: subprocess.Popen[str], log: Path) -> None:
    """Until some rounds are done."""
    while log.stat().st_size < 200_000:
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


@pytest.mark.slow
def test_workers_end_when_their_driver_is_killed(tmp_path: Path) -> None:
    file, log = write_program(tmp_path)
    arguments = ["--model", f"{file}:build", "--backend", f"{file}:one", "--runs", "100000"]
    process = start(tmp_path, *arguments)
    wait_for_turns(process, log)
    children = psutil.Process(process.pid).children()
    # Beside them is the process that sees to it that they end.
    workers = [each for each in children if "cleaner_process" not in " ".join(each.cmdline())]
    assert len(workers) == 2
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(children, timeout=300)
    assert alive == []


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    file, _ = write_program(tmp_path)
    spec = Spec(model=f"{file}:build", backend=f"{file}:hangs", threads=1)
    with WorkerProcess(tmp_path / "caches", tmp_path / "log", 200.0) as worker:
        worker.ask("prepare", BuiltReply, spec)
        worker.limit_s = 1.0
        with pytest.raises(WorkerFailed, match="No answer for 1 s while compiling"):
            worker.ask("first", FirstCall)
        assert not worker._worker.is_running


@pytest.mark.slow
def test_a_model_that_fails_in_eager_mode_is_not_compiled(tmp_path: Path) -> None:
    file, log = write_program(tmp_path)
    specs = [
        Spec(model=f"{file}:broken", backend=name, runs=2) for name in ("eager", f"{file}:one")
    ]
    heard: list[BenchStep] = []
    with ModelBench(specs, Method(processes=2), heard.append) as bench:
        bench.measure()
        eager, one = bench.benchmarks()
    assert "this model is broken" in eager.error
    assert one.error.startswith("Not measured, because eager mode failed")
    assert {step.backend for step in heard} == {"eager"} and log.read_text() == ""


# About 1 min.
@pytest.mark.slow
@pytest.mark.usefixtures("cxx")
def test_the_second_process_finds_the_caches_of_the_first(tmp_path: Path) -> None:
    file, _ = write_program(tmp_path)
    arguments = ["--model", f"{file}:build", "--backend", f"{file}:counted"]
    arguments += ["--runs", "3", "--processes", "2", "--no-examine"]
    ended = finish(start(tmp_path, *arguments), tmp_path)
    assert ended.status == 0, ended.stderr
    first, second = (int(hits) for _, hits in ended.log)
    assert first == 0 and second > 0
    row = ended.row(":counted")
    assert row["compile_seconds"] > 0 and row["warm_compile_seconds"] > 0
    assert [len(runs) for runs in row["runs_ms"]] == [3, 3]


@pytest.mark.slow
def test_backends_that_do_not_fit_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, _ = write_program(tmp_path)
    monkeypatch.setattr("compilescope.measure.bench.measurement.fitting", lambda *_: 1)
    names = ("eager", f"{file}:one", f"{file}:two")
    specs = [Spec(model=f"{file}:build", backend=name, runs=3, threads=1) for name in names]
    with ModelBench(specs, Method(processes=1, examine=False), lambda step: None) as bench:
        bench.measure()
        found = bench.benchmarks()
    assert [row.backend for row in found] == list(names)
    assert all(any("2 groups" in note for note in row.notes) for row in found)
    assert all(row.speedup_ci is not None or row.too_noisy for row in found)
