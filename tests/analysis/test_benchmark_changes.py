"""Two benchmark runs: what is called a change, and what is left to the machine."""

from __future__ import annotations

import re

import msgspec
import pytest

from benchmark_runs import MACHINE, bench_run, row, timed
from compilescope.knowledge.analysis.benchmark_changes import (
    NO_CONTROL,
    NOISE,
    NOISY_CONTROL,
    TOO_FEW,
    WIDE,
    BenchmarkChange,
    BenchmarkComparison,
    compare_benchmarks,
)
from compilescope.record.benchmark import Machine
from compilescope.record.run import Run
from compilescope.report.benchmark_changes import change_text

pytest.importorskip("scipy")


def run(eager: float | None, inductor: float, *, seed: int, machine: Machine = MACHINE) -> Run:
    control = [row("bert", "eager", eager, seed=seed)] if eager is not None else []
    return bench_run(*control, row("bert", "inductor", inductor, seed=seed + 50), machine=machine)


def compared(before: Run, after: Run) -> BenchmarkComparison:
    return compare_benchmarks(before, after, ("a", "b"))


def of(backend: str, seen: BenchmarkComparison) -> BenchmarkChange:
    return next(change for change in seen.benchmarks if change.backend == backend)


def test_the_same_twice_is_no_change() -> None:
    for seed in range(10, 16):
        seen = compared(run(100, 70, seed=seed), run(100, 70, seed=seed + 1000))
        assert {change.verdict for change in seen.benchmarks} <= {"no real change", "unknown"}


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "slower"), (0.9, "faster")])
def test_a_real_change(factor: float, verdict: str) -> None:
    change = of("inductor", compared(run(100, 70, seed=1), run(100, 70 * factor, seed=2)))
    assert (change.verdict, change.by) == (verdict, "latency")
    assert change.latency is not None and change.latency.ci is not None
    low, high = change.latency.ci
    assert low < 1 / factor < high


def test_a_slower_machine_is_no_change_of_the_backend() -> None:
    seen = compared(run(100, 70, seed=1), run(120, 84, seed=2))
    assert of("eager", seen).verdict == "slower"
    change = of("inductor", seen)
    assert (change.verdict, change.by) == ("no real change", "speedup")
    assert change.latency is not None and change.latency.value < 0.9


def test_a_change_shows_through_a_slower_machine() -> None:
    slower = of("inductor", compared(run(100, 70, seed=1), run(120, 84 * 1.2, seed=2)))
    faster = of("inductor", compared(run(100, 70, seed=1), run(120, 84 / 1.2, seed=2)))
    assert (slower.verdict, faster.verdict) == ("slower", "faster")


def test_without_a_control_a_change_is_unknown_and_no_change_is_none() -> None:
    before = run(None, 70, seed=1)
    changed, same = compared(before, run(None, 90, seed=2)), compared(before, run(None, 70, seed=2))
    assert of("inductor", changed).verdict == "unknown"
    assert of("inductor", changed).reason == NO_CONTROL
    assert of("inductor", same).verdict == "no real change"


def test_a_noisy_control_decides_nothing() -> None:
    noisy = [
        bench_run(
            row("bert", "eager", 100, seed=seed, spread=0.4),
            row("bert", "inductor", ms, seed=seed + 9),
        )
        for seed, ms in ((1, 70), (2, 80))
    ]
    change = of("inductor", compared(*noisy))
    assert (change.verdict, change.reason) == ("unknown", NOISY_CONTROL)


def test_no_real_change_may_say_little() -> None:
    for spread, said in ((0.15, ("no real change", WIDE)), (0.4, ("unknown", NOISE))):
        noisy = [bench_run(row("bert", "eager", 100, seed=s, spread=spread)) for s in (1, 2)]
        change = of("eager", compared(*noisy))
        assert (change.verdict, change.reason) == said


def test_a_range_is_told_where_a_figure_would_be_noise() -> None:
    quick, slow = (
        ((10.0, 11.0, 12.0, 60.0, 14.0, 15.0),),
        ((100.0, 110.0, 900.0, 130.0, 140.0, 150.0),),
    )
    rows = [row("bert", "eager", 10, runs_ms=runs) for runs in (quick, slow)]
    seen = compared(*map(bench_run, rows))
    change = of("eager", seen)
    assert change.verdict == "slower" and change.judged is not None and change.judged.too_noisy
    assert re.search(r"\+\d+\.\d to \+\d+\.\d %", change_text(change))


def test_too_few_runs() -> None:
    few = row("bert", "eager", 100, runs_ms=timed(100, processes=1, runs=2))
    change = of("eager", compared(bench_run(few), run(100, 70, seed=1)))
    assert (change.verdict, change.reason) == ("unknown", TOO_FEW)


def test_no_figures_on_one_side() -> None:
    failed = msgspec.structs.replace(
        row("bert", "inductor", 70), runs_ms=(), latency_ms=None, error="It crashed."
    )
    seen = compared(run(100, 70, seed=1), bench_run(row("bert", "eager", 100, seed=2), failed))
    change = of("inductor", seen)
    assert change.verdict == "unknown"
    assert change.reason == "no figures in the later run: It crashed."


def test_what_is_in_one_run_alone() -> None:
    seen = compared(
        bench_run(row("bert", "eager", 100), row("vit", "eager", 5)),
        bench_run(row("bert", "eager", 100), row("bert", "eager", 60, dtype="bfloat16")),
    )
    assert (seen.removed, seen.added) == (("vit on eager",), ("bert on eager",))


def test_machines_and_settings_that_differ() -> None:
    other = msgspec.structs.replace(MACHINE, threads=4, torch="2.14.0", accelerators=("H200",))
    told = compared(run(100, 70, seed=1), run(100, 70, seed=2, machine=other)).differences
    assert told == (
        "The runs differ in threads: 2 before, 4 after; accelerator: none before, H200 after; "
        "torch: 2.13.0+cpu before, 2.14.0 after.",
    )
    tuned = bench_run(row("bert", "inductor", 70, compile_mode="max-autotune"))
    assert compared(bench_run(row("bert", "inductor", 70)), tuned).differences == (
        "torch.compile had mode default before and max-autotune after.",
    )


def test_a_machine_that_is_not_named() -> None:
    unnamed = bench_run(row("bert", "eager", 100), machine=None)
    assert "does not say which machine" in compared(unnamed, unnamed).differences[0]
