"""The gate for benchmark runs: three answers, by where the interval lies."""

from __future__ import annotations

import msgspec
import pytest

from benchmark_runs import bench_run, benchmark_run, row
from compilescope.base.project import Project
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.verdict import (
    NOTHING_WRONG,
    GateCheck,
    GateLimits,
    Judgement,
    complete_for_benchmarks,
    judge,
)
from compilescope.record.benchmark import Benchmark
from compilescope.record.bodies import Body


def seen(*bodies: Body, **header: object) -> Digest:
    return digest(bench_run(*bodies, **header))


def rows(speedup: float, low: float, high: float) -> tuple[Benchmark, Benchmark]:
    fast = row("bert", "inductor", 10.0, speedup=speedup, speedup_ci=(low, high))
    return row("bert", "eager", 10.0), fast


def slowdowns(judgement: Judgement) -> list[GateCheck]:
    return [check for check in judgement.checks if check.name == "slowdown"]


@pytest.mark.parametrize(
    ("speedup", "outcome"),
    [
        ((1.4, 1.3, 1.5), "pass"),
        ((0.98, 0.97, 0.99), "pass"),
        ((0.96, 0.93, 0.99), "unknown"),
        ((0.9, 0.88, 0.92), "fail"),
        ((1 / 1.05, 1 / 1.05, 1.0), "pass"),
    ],
)
def test_where_the_interval_lies(speedup: tuple[float, float, float], outcome: str) -> None:
    judgement = judge(seen(*rows(*speedup)), GateLimits(slowdown=1.05))
    (check,) = slowdowns(judgement)
    assert check.outcome == judgement.outcome == outcome
    assert check.subject == "bert on inductor"
    if outcome == "unknown":
        assert (
            "the interval spans the limit of 1.05x: measure it with more --runs or" in check.message
        )


def test_rows_without_figures_decide_nothing() -> None:
    checks = slowdowns(judge(digest(benchmark_run()), GateLimits(slowdown=1.05)))
    told = {check.subject: (check.outcome, check.message) for check in checks}
    assert told["mamba on compilescope_mini"] == (
        "unknown",
        "mamba on compilescope_mini: no figures",
    )
    assert told["mamba on aot_eager"][0] == "unknown"
    assert told["bert on compilescope_mini"][0] == "fail"
    assert told["bert on inductor"][0] == "pass"


def test_errors_and_wrong_results_are_failures() -> None:
    found = findings(digest(benchmark_run()))
    assert [(f.rule_id, f.title.partition(":")[0]) for f in found] == [
        ("bench/kerneldiff", "resnet on inductor"),
        ("bench/failed", "resnet on compilescope_mini"),
    ]
    judgement = judge(digest(benchmark_run()), GateLimits(failures=1))
    assert judgement.outcome == "fail" and len(judgement.against) == 2
    assert judge(digest(benchmark_run()), GateLimits(failures=2)).outcome == "pass"


def test_limits_hold_for_each_row() -> None:
    bad = row("resnet", "inductor", 1.0, breaks=2)
    judgement = judge(seen(*rows(1, 1, 1), bad), GateLimits(breaks=1))
    assert judgement.checks[0].message == "resnet on inductor: 2 graph breaks, at most 1 allowed"
    assert judge(seen(*rows(1, 1, 1), bad), GateLimits(breaks=2)).outcome == "pass"
    unknown = row("resnet", "inductor", 1.0, breaks=None)
    assert judge(seen(*rows(1, 1, 1), unknown), GateLimits(breaks=0)).outcome == "unknown"


def test_what_a_benchmark_does_not_record() -> None:
    judgement = judge(seen(*rows(1, 1, 1)), GateLimits(eager=0, coverage=90.0))
    assert [check.outcome for check in judgement.checks] == ["unknown", "unknown"]


def test_no_backend_at_all() -> None:
    judgement = judge(seen(row("bert", "eager", 10.0)), GateLimits(slowdown=1.05))
    assert judgement.outcome == "unknown"


def test_an_interrupted_benchmark_never_passes() -> None:
    for header in ({"exit_status": 130}, {"ended_ns": None, "launcher_pid": 2**22 + 1}):
        judgement = judge(seen(*rows(1.4, 1.3, 1.5), **header), GateLimits(slowdown=1.05))
        assert judgement.outcome == "unknown"
    # A row that failed is a failure, not a doubt.
    assert (
        judge(seen(*rows(1.4, 1.3, 1.5), exit_status=1), GateLimits(slowdown=1)).outcome == "pass"
    )


def test_limits_of_a_project_and_of_the_command_line() -> None:
    project = Project(max_breaks=3, max_eager=0, min_coverage=90.0, max_slowdown=1.2)
    limits = complete_for_benchmarks(GateLimits(slowdown=1.05), project)
    assert limits == GateLimits(breaks=3, slowdown=1.05, failures=0)
    assert complete_for_benchmarks(GateLimits(), Project()) is NOTHING_WRONG
    assert complete_for_benchmarks(GateLimits(), Project(), with_baseline=True) == GateLimits()


def against(before: Digest, after: Digest, limit: float = 1.05) -> Judgement:
    pytest.importorskip("scipy")
    return judge(after, GateLimits(slowdown=limit), earlier=before)


def pair(eager: float, inductor: float, seed: int) -> Digest:
    return seen(
        row("bert", "eager", eager, seed=seed), row("bert", "inductor", inductor, seed=seed + 9)
    )


def test_against_an_earlier_run() -> None:
    before = pair(100, 70, 1)
    assert against(before, pair(100, 70, 2)).outcome == "pass"
    assert against(before, pair(100, 80, 2)).outcome == "fail"
    assert against(before, pair(100, 80, 2), limit=1.3).outcome == "pass"
    (check,) = slowdowns(against(before, pair(100, 73.5, 2)))
    assert check.outcome == "unknown"


def test_a_slower_machine_does_not_fail_the_gate() -> None:
    (check,) = slowdowns(against(pair(100, 70, 1), pair(130, 91, 2)))
    assert check.outcome == "pass" and "relative to eager mode, which changed too" in check.message


def test_without_a_control_nothing_fails() -> None:
    before, after = (seen(row("bert", "inductor", ms, seed=int(ms))) for ms in (70.0, 90.0))
    assert against(before, after).outcome == "unknown"
    assert against(after, before).outcome == "pass"


def test_rows_of_one_run_alone_decide_nothing() -> None:
    before = pair(100, 70, 1)
    after = digest(bench_run(row("bert", "eager", 100), run="later"))
    (check,) = slowdowns(against(before, after))
    assert (check.outcome, check.message) == ("unknown", "bert on inductor is not in later")
    (check,) = slowdowns(against(after, before))
    assert check.outcome == "unknown"


def test_a_program_is_not_judged_as_a_benchmark() -> None:
    from samples import full_run

    names = [check.name for check in judge(digest(full_run()), GateLimits(slowdown=1.0)).checks]
    assert "slowdown" not in names


def test_the_same_row_has_the_same_fingerprint_in_every_run() -> None:
    one, two = (
        findings(digest(bench_run(msgspec.structs.replace(row("bert", "x", 1.0), error=why))))
        for why in ("It crashed.", "It crashed in another way.")
    )
    assert one[0].fingerprint == two[0].fingerprint
