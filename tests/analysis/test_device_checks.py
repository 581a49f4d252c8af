"""Which devices a run was checked against, and how that came out."""

from __future__ import annotations

import msgspec

from benchmark_runs import bench_run, row
from builders import event, run_of
from compilescope.knowledge.analysis.device_checks import device_checks
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.figures import figures
from compilescope.knowledge.analysis.gate.verdict import GateLimits, judge
from compilescope.knowledge.analysis.overview import JudgedRun, overview
from compilescope.record.bodies import Body, DeviceChecked, GraphCaptured, Violation
from compilescope.record.run import Run
from samples import CODE


def told(*bodies: Body) -> Run:
    return run_of(*(event(body, number=n) for n, body in enumerate(bodies)))


def test_graphs_that_all_pass_are_a_pass() -> None:
    run = told(DeviceChecked("npu", "pass", model="a"), DeviceChecked("npu", "pass", model="b"))
    (check,) = device_checks(run)
    assert (check.outcome, check.graphs, check.models) == ("pass", 2, ("a", "b"))
    assert figures(run).devices == ("npu",)


def test_one_that_fails_fails_all_and_one_that_nobody_could_tell_is_no_pass() -> None:
    bad = DeviceChecked("npu", "fail", errors=2, warnings=1)
    odd = DeviceChecked("npu", "unknown", unknown=1)
    good = DeviceChecked("npu", "pass")
    (check,) = device_checks(told(good, bad, odd))
    assert (check.outcome, check.errors, check.warnings, check.unknown) == ("fail", 2, 1, 1)
    (check,) = device_checks(told(good, odd))
    assert check.outcome == "unknown"


def test_a_later_check_of_all_graphs_is_what_counts() -> None:
    first = DeviceChecked("npu", "fail", graphs=3, errors=2, whole=True)
    later = DeviceChecked("npu", "pass", graphs=3, title="A chip", whole=True)
    (check,) = device_checks(told(first, later))
    assert (check.outcome, check.graphs, check.title) == ("pass", 3, "A chip")


def test_violations_alone_are_no_pass() -> None:
    """Of runs of an earlier version."""
    refused = Violation("dtype", "npu", "aten.sin.default", "float64", "float32")
    warned = Violation("dtype", "dsp", "aten.sin.default", "float64", "float32", "warning")
    npu, dsp = device_checks(told(refused, warned))
    assert (npu.outcome, npu.errors, npu.graphs) == ("fail", 1, None)
    assert (dsp.outcome, dsp.warnings) == ("unknown", 1)


def test_a_benchmark_with_a_device_counts_and_one_without_does_not() -> None:
    named = row("bert", "inductor", 1.0, constraints="npu", violations=0)
    (check,) = device_checks(bench_run(named, row("vit", "inductor", 1.0)))
    assert (check.device, check.outcome, check.models) == ("npu", "pass", ("bert",))
    assert device_checks(bench_run(row("vit", "inductor", 1.0))) == []


def test_what_preflight_found_of_a_run_is_how_the_run_fared() -> None:
    """Its violations have no place in the run: the gate counts them all the same."""
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE, backend="eager")
    passed = DeviceChecked("npu", "pass", graphs=2, whole=True)
    failed = DeviceChecked("npu", "fail", graphs=2, errors=3, whole=True)
    unclear = DeviceChecked("dsp", "unknown", graphs=2, unknown=1, whole=True)
    for bodies, state, outcome in (
        ([], "unchecked", "unknown"),
        ([passed], "pass", "pass"),
        ([failed], "fail", "fail"),
        ([failed, passed], "pass", "pass"),
        ([passed, unclear], "unknown", "unknown"),
    ):
        seen = digest(told(graph, *bodies))
        assert seen.constraints.state == state, bodies
        judged = judge(seen, GateLimits(violations=0))
        assert judged.outcome == outcome, bodies
    seen = digest(told(graph, failed))
    assert judge(seen, GateLimits(violations=3)).outcome == "pass"


def test_an_overview_of_runs_names_the_one_that_preflight_failed() -> None:
    run = told(DeviceChecked("npu", "fail", graphs=2, errors=3, whole=True))
    told_of = overview([JudgedRun(run=run, seen=digest(run), judgement=None)]).constraints
    assert told_of.failed == 1
    assert told_of.worst is not None and told_of.worst.text == "3 violations on npu"


def test_a_device_that_saw_a_part_of_a_run_has_not_passed_it() -> None:
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE, backend="mock_backend")
    checked = event(DeviceChecked("npu", "pass"), number=2)
    other = event(msgspec.structs.replace(graph, backend="inductor"), number=3, compile_id="1/0")
    for more, status, outcome in (([], 0, "pass"), ([other], 0, "unknown"), ([], 1, "unknown")):
        run = run_of(event(graph, number=1), checked, *more, exit_status=status)
        (check,) = device_checks(run)
        assert (check.outcome, digest(run).constraints.state) == (outcome, outcome)
