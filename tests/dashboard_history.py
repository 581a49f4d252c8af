"""Runs over some days, for the pages that show many of them: made without torch."""

from __future__ import annotations

from pathlib import Path

import msgspec

import samples
from benchmark_runs import MACHINE, bench_run, row
from builders import event, frame, run_of
from compilescope.record.bodies import TensorDiff, Violation
from compilescope.record.outcomes import ErrorGrid, WorstValue
from compilescope.record.run import Run
from compilescope.report.sharing.archive import write_archive
from compilescope.scale.jobs.job import Finished, JobResult
from compilescope.scale.jobs.store import Store
from compilescope.scale.sweep.record import write_place
from dashboard_server import Served
from sweep_samples import BREAK, JOBS, job, sweep_run
from waiting import until

_DAY = 86_400 * 10**9
_FIRST = 1_780_000_000 * 10**9
ODD_NAME = "models/odd name?.py"
OTHER = msgspec.structs.replace(MACHINE, name="bob", cpu="Apple M3", cores=8, threads=8)


def stored(run: Run, home: Path, name: str, day: float, **header: object) -> Path:
    """On that day."""
    begun = _FIRST + int(day * _DAY)
    run.header = msgspec.structs.replace(
        run.header, started_ns=begun, ended_ns=begun + 10**10, exit_status=0, **header
    )
    return samples.store(run, home, name)


def history_home(home: Path) -> Path:
    """Benchmarks that get faster, once on another machine; sweeps; numbers; violations."""
    for day, ms in enumerate((571.0, 569.0, 560.0, 431.0)):
        stored(measured(ms), home, f"{day:06x}-bench", day)
    elsewhere = bench_run(
        row("bert", "eager", 400.0), row("resnet", "inductor", 33.1, eager=48.2), machine=OTHER
    )
    stored(elsewhere, home, "00000a-bench", 5)
    stored(sweep_run(), home, "00000b-sweep", 1)
    stored(sweep_run(*JOBS[:3], job("new")), home, "00000c-sweep", 2)
    stored(numbers_run("fail", 0.5), home, "00000d-diff-mlp", 1)
    stored(numbers_run("pass", 0.0), home, "00000e-diff-mlp", 2)
    stored(violating_run(), home, "00000f-train", 3)
    stored(samples.full_run(), home, "000010-model", 4, command=("model.py",), cwd="/work")
    stored(samples.full_run(), home, "000011-model", 5, command=("model.py",), cwd="/work")
    stored(samples.ranks_run(), home, "000012-ranks", 6)
    stored(samples.big_run(5, 6, 60), home, "000014-big", 7, command=("big.py",))
    _sweep_with_a_store(home)
    return home


def _sweep_with_a_store(home: Path) -> None:
    """One job, whose own run was kept."""
    own = samples.store(samples.full_run(), home.parent, "own")
    packed = home.parent / "own.zip"
    write_archive(own, packed)
    run = sweep_run(job(ODD_NAME, causes=(BREAK,), run="kept"))
    sweep = stored(run, home, "000013-sweep", 0)
    write_place(sweep, "store")
    with Store(str(sweep / "store")) as store:
        store.put(Finished(JobResult(name=ODD_NAME, state="ok"), packed.read_bytes()))


def settle(served: Served) -> None:
    """Until what each run is has been read."""
    until(lambda: "still being read" not in served.client.get("/sweeps").text)


def measured(ms: float) -> Run:
    return bench_run(row("bert", "eager", 812.4), row("bert", "inductor", ms, eager=812.4))


def numbers_run(verdict: str, error: float) -> Run:
    lines = tuple("".join(str((x * y) % 9) for x in range(24)) for y in range(12))
    grid = ErrorGrid(lines, 1e-6, error or 1e-5, 12, 24)
    bad = TensorDiff(
        "output['logits']",
        verdict,  # type: ignore[arg-type]
        "12 of 288 elements differ",
        "mlp",
        test="inductor",
        metrics={"max_abs": error, "max_rel": error, "mismatched": 12},
        shape=(12, 24),
        dtype="float32",
        worst=(WorstValue((3, 4), "1.0", "1.5", "0.5"),),
        errors=grid,
    )
    good = TensorDiff("output['loss']", "pass", model="mlp", test="inductor")
    command = ("compilescope", "diff", "mlp.py:build", "--atol", "1e-5")
    return run_of(event(bad, number=0), event(good, number=1), command=command)


def violating_run() -> Run:
    bodies = [
        Violation("dtype", "npu-a", "aten.sin.default", "float64", "float32", model="bert"),
        Violation(
            "alignment", "npu-a", "aten.mm.default", "7", "multiples of 16", remedy="Pad it."
        ),
        Violation("dtype", "my-chip", "aten.cos.default", "float64", "float32"),
    ]
    return run_of(
        *(event(body, number=n, stack=(frame(),)) for n, body in enumerate(bodies)),
        command=("train.py",),
    )
