"""The gate holds, fails, or says that it cannot tell; never does it pass what it did not see."""

from __future__ import annotations

import msgspec
import pytest

from analysis.gate_runs import (
    CODE,
    LIBRARY,
    a_break,
    a_failure,
    a_library_break,
    a_recompile,
    an_eager_function,
    graph,
)
from builders import ROOT, event, frame, run_of
from compilescope.base.project import Project
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.verdict import (
    NOTHING_LOST,
    AcceptedFinding,
    GateCheck,
    GateLimits,
    Judgement,
    complete,
    complete_for_numbers,
    judge,
    project_limits,
)
from compilescope.knowledge.rules.causes.catalogue import rule_words
from compilescope.knowledge.rules.causes.explanations import guard_rules
from compilescope.record.bodies import (
    DiffOutcome,
    FrameSkipped,
    GraphBreak,
    HookUnavailable,
    RegionTime,
    StanceChanged,
    TensorDiff,
    ToolFault,
    Violation,
)
from compilescope.record.event import Event


def seen(*events: Event, **header: object) -> Digest:
    return digest(run_of(*events, **header))


def known(*of: Digest) -> tuple[AcceptedFinding, ...]:
    return tuple(
        AcceptedFinding(kind=f.kind, fingerprint=f.fingerprint) for one in of for f in findings(one)
    )


def outcomes(judgement: Judgement) -> dict[str, str]:
    return {check.name: check.outcome for check in judgement.checks}


def check(judgement: Judgement, name: str) -> GateCheck:
    [found] = [one for one in judgement.checks if one.name == name]
    return found


def test_a_clean_run_passes() -> None:
    judged = judge(seen(graph()), NOTHING_LOST)
    assert judged.outcome == "pass"
    assert outcomes(judged) == dict.fromkeys(("breaks", "recompiles", "eager", "failures"), "pass")


@pytest.mark.parametrize(
    ("lost", "name"),
    [
        (a_break(), "breaks"),
        (a_recompile(), "recompiles"),
        (an_eager_function(), "eager"),
        (a_failure(), "failures"),
    ],
)
def test_each_loss_fails_its_own_limit(lost: Event, name: str) -> None:
    judged = judge(seen(graph(), lost), NOTHING_LOST)
    failed = [one.name for one in judged.checks if one.outcome == "fail"]
    assert failed == [name]
    assert len(check(judged, name).findings) == len(judged.against) == 1
    within = msgspec.structs.replace(NOTHING_LOST, **{name: 1})
    assert judge(seen(graph(), lost), within).outcome == "pass"


def test_only_limits_that_were_given_are_looked_at() -> None:
    judged = judge(seen(graph(), a_break()), GateLimits(graphs=1))
    assert outcomes(judged) == {"graphs": "pass"}
    assert judge(seen(graph(), graph()), GateLimits(graphs=1)).outcome == "fail"


def test_someone_who_limits_anything_wants_no_failures() -> None:
    assert complete(GateLimits(breaks=3)) == GateLimits(breaks=3, failures=0)
    assert complete(GateLimits(breaks=3, failures=2)).failures == 2
    assert complete(GateLimits()) == NOTHING_LOST
    assert complete(GateLimits(), with_baseline=True) == GateLimits()
    assert complete(GateLimits(graphs=1), with_baseline=True) == GateLimits(graphs=1, failures=0)


def test_the_command_line_wins_over_the_project() -> None:
    project = project_limits(Project(max_breaks=5, max_graphs=2, min_coverage=90.0))
    assert GateLimits(breaks=0).over(project) == GateLimits(breaks=0, graphs=2, coverage=90.0)


def test_own_counts_no_causes_in_installed_packages() -> None:
    run = seen(graph(), a_library_break(), a_recompile(file=LIBRARY))
    assert judge(run, NOTHING_LOST).outcome == "fail"
    judged = judge(run, NOTHING_LOST, own=True)
    assert judged.outcome == "pass"
    assert check(judged, "breaks").found == check(judged, "recompiles").found == 0
    assert judge(seen(graph(), a_library_break(), a_break()), NOTHING_LOST, own=True).against


def test_own_counts_what_was_typed_and_what_has_no_place() -> None:
    typed = a_break(file="<string>", origin="generated")
    assert judge(seen(graph(), typed), GateLimits(breaks=0), own=True).outcome == "fail"
    lost = msgspec.structs.replace(a_failure(), stack=())
    lost = msgspec.structs.replace(lost, body=msgspec.structs.replace(lost.body, frame=None))
    assert judge(seen(graph(), lost), GateLimits(failures=0), own=True).outcome == "fail"


def test_an_eager_function_is_charged_to_what_made_it_eager() -> None:
    broken = GraphBreak("Data-dependent branching", "GB0170", outcome="frame-eager", frame=CODE)
    run = seen(graph(), event(broken, number=9, stack=(frame(),)))
    judged = judge(run, NOTHING_LOST)
    assert (check(judged, "eager").found, check(judged, "breaks").found) == (1, 1)
    assert [f.kind for f in check(judged, "eager").findings] == ["break"]
    assert len(judged.against) == 1
    in_library = seen(
        graph(), event(broken, number=9, stack=(frame(file=LIBRARY, origin="library"),))
    )
    assert judge(in_library, GateLimits(eager=0), own=True).outcome == "pass"


def test_a_backend_that_declines_without_an_error_is_a_finding() -> None:
    run = seen(graph(), an_eager_function("backend", "Dynamo decided to skip the frame"))
    assert [f.rule_id for f in findings(run)] == ["eager/backend"]
    suppressed = event(FrameSkipped(CODE, "backend", "?", because="0.2"), number=600)
    failed = seen(graph(), a_failure(), suppressed)
    assert [f.kind for f in findings(failed)] == ["failure"]


def test_a_refused_recompile_counts() -> None:
    run = seen(graph(), a_recompile(refused="limit"))
    assert judge(run, GateLimits(recompiles=0)).outcome == "fail"
    assert findings(run)[0].level == "error"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"exit_status": 3}, "the program ended with status 3"),
        ({"exit_status": None, "signal": 9}, "the program was terminated by signal 9 (SIGKILL)"),
        ({"ended": False}, "truncated"),
    ],
)
def test_a_program_that_did_not_end_well_cannot_be_judged(
    header: dict[str, object], words: str
) -> None:
    judged = judge(seen(graph(), **header), NOTHING_LOST)
    assert judged.outcome == "unknown"
    assert words in judged.unsure[0].message
    # Not one limit may look as if it held.
    assert set(outcomes(judged).values()) == {"unknown"}


def test_a_definite_failure_wins_over_what_could_not_be_told() -> None:
    judged = judge(seen(graph(), a_break(), exit_status=1), NOTHING_LOST)
    assert judged.outcome == "fail"
    assert outcomes(judged)["program"] == "unknown"


def test_what_keeps_from_telling() -> None:
    empty = judge(seen(), NOTHING_LOST)
    assert (empty.outcome, empty.unsure[0].message) == ("unknown", "nothing was compiled")
    faulty = seen(graph(), event(ToolFault("hook", "KeyError"), number=2))
    assert "failed 1 time inside" in judge(faulty, NOTHING_LOST).unsure[0].message
    live = run_of(graph(), ended=False)
    live.live = True
    assert judge(digest(live), NOTHING_LOST).unsure[0].message == "the run is still in progress"


@pytest.mark.parametrize(
    ("hook", "name"),
    [
        ("graph-breaks", "breaks"),
        ("compile-times", "failures"),
        ("recompiles", "recompiles"),
        ("frame-skips", "eager"),
        ("structured-trace", "graphs"),
    ],
)
def test_what_this_torch_does_not_show_is_not_zero(hook: str, name: str) -> None:
    missing = event(HookUnavailable(hook, "torch.x", "something"), number=2)
    judged = judge(seen(graph(), missing), GateLimits(**{name: 5}))
    assert check(judged, name).outcome == "unknown"
    assert "does not report something" in check(judged, name).message


def test_a_hook_that_hides_breaks_hides_new_ones() -> None:
    missing = event(HookUnavailable("graph-breaks", "torch.x", "graph breaks"), number=2)
    assert judge(seen(graph(), missing), GateLimits(), baseline=()).outcome == "unknown"


def test_frames_that_left_no_trace_are_not_zero() -> None:
    skipped = event(FrameSkipped(CODE, "unexplained", "?"), number=2)
    assert judge(seen(graph(), skipped), GateLimits(eager=0)).outcome == "unknown"
    stance = event(StanceChanged("force_eager"), number=2)
    assert judge(seen(graph(), stance), GateLimits(eager=0)).outcome == "unknown"
    generator = an_eager_function("generator", "Attempt to trace generator")
    assert judge(seen(graph(), generator), GateLimits(breaks=0)).outcome == "unknown"


def timed(inside_ns: int, *, calls: int = 1) -> Event:
    times = RegionTime(
        CODE,
        calls,
        1000 if calls else 0,
        inside_ns,
        warmup_calls=1,
    )
    return event(times, number=2)


def test_coverage() -> None:
    assert judge(seen(graph(), timed(950)), GateLimits(coverage=95)).outcome == "pass"
    below = judge(seen(graph(), timed(949)), GateLimits(coverage=95))
    assert below.outcome == "fail"
    assert "94.9 %" in below.checks[0].message


def test_coverage_that_was_not_measured() -> None:
    judged = judge(seen(graph()), GateLimits(coverage=0))
    assert (judged.outcome, judged.checks[0].found) == ("unknown", None)
    assert "not timed" in judged.checks[0].message
    warm = judge(seen(graph(), timed(0, calls=0)), GateLimits(coverage=0))
    assert "after warm-up" in warm.checks[0].message


def test_only_new_causes_fail_against_a_baseline() -> None:
    before = seen(graph(), a_break())
    after = seen(graph(), a_break(), a_break(20, "    print(h)"))
    judged = judge(after, GateLimits(), baseline=known(before))
    assert judged.outcome == "fail"
    assert [f.source.strip() for f in judged.new] == ["print(h)"]
    assert [f.source.strip() for f in judged.known] == ["if h.mean() > 0:"]
    assert judge(before, GateLimits(), baseline=known(before)).outcome == "pass"


def test_a_line_that_moved_is_known() -> None:
    moved = seen(graph(), a_break(80))
    assert judge(moved, GateLimits(), baseline=known(seen(graph(), a_break(8)))).outcome == "pass"


def test_another_machine_knows_the_same_causes() -> None:
    there = ROOT.replace("ada", "bob")
    elsewhere = seen(graph(), a_break(file=f"{there}/model.py"), root=there)
    assert (
        judge(elsewhere, GateLimits(), baseline=known(seen(graph(), a_break()))).outcome == "pass"
    )


def test_failures_are_judged_through_the_baseline() -> None:
    before = seen(graph(), a_failure("RuntimeError"))
    assert judge(before, GateLimits(), baseline=()).outcome == "fail"
    assert judge(before, GateLimits(), baseline=known(before)).outcome == "pass"
    # Another error at the same place is another failure.
    other = seen(graph(), a_failure("NotImplementedError"))
    assert judge(other, GateLimits(), baseline=known(before)).outcome == "fail"


def test_limits_and_baseline_must_both_hold() -> None:
    run = seen(graph(), a_break())
    assert judge(run, GateLimits(breaks=0), baseline=known(run)).outcome == "fail"
    assert judge(run, GateLimits(breaks=1), baseline=known(run)).outcome == "pass"
    assert judge(run, GateLimits(breaks=1), baseline=()).outcome == "fail"


def test_what_is_gone_is_told() -> None:
    before = seen(graph(), a_break(), a_library_break())
    judged = judge(seen(graph(), a_library_break()), GateLimits(), baseline=known(before), own=True)
    assert judged.outcome == "pass"
    assert len(judged.gone) == 1, "a library's cause is still there, although it does not count"


def test_a_recompile_is_known_whatever_the_values() -> None:
    names = ("G['__builtins_dict___3'].x", "G['__builtins_dict___11'].x")
    one, other = (findings(seen(graph(), a_recompile(name)))[0] for name in names)
    assert one.fingerprint == other.fingerprint
    third = findings(seen(graph(), a_recompile("self.layers[3].x")))[0]
    fourth = findings(seen(graph(), a_recompile("self.layers[4].x")))[0]
    assert third.fingerprint != fourth.fingerprint
    assert "expected" not in third.title


def test_a_wrapped_error_is_named() -> None:
    [finding] = findings(seen(graph(), a_failure("ValueError")))
    assert "ValueError: no such op" in finding.message


def test_every_rule_has_words() -> None:
    ids = [f"recompile/{rule.id}" for rule in guard_rules()]
    ids += ["GB0170", "failure/BackendCompilerFailed", "eager/disabled", "eager/generator"]
    for rule in ids:
        words = rule_words(rule)
        assert words.title and words.why and words.fix and "\n" not in words.title, rule
    assert rule_words("GB0170").title == "Data-dependent branching"
    for unknown in ("GB9999", "recompile/no-such", "eager/x", "failure/X", "unregistered-break"):
        assert rule_words(unknown).title


def refused(severity: str = "error", op: str = "aten.mm", number: int = 50) -> Event:
    body = Violation("dtype", "npu-a", op, "float64", "float32", severity=severity)  # type: ignore[arg-type]
    return event(body, number=number, stack=(frame(),))


def compared(*verdicts: str) -> list[Event]:
    return [
        event(TensorDiff(f"output[{n}]", verdict, "why"), number=60 + n)  # type: ignore[arg-type]
        for n, verdict in enumerate(verdicts)
    ]


def test_violations_count_where_they_are_limited_and_nowhere_else() -> None:
    run = seen(graph(), refused(), refused(number=51), refused("warning", "aten.sin", 52))
    assert judge(run, NOTHING_LOST).outcome == "pass"
    judged = judge(run, GateLimits(violations=0))
    assert judged.outcome == "fail"
    assert check(judged, "violations").found == 1, "a place counts once, a warning not at all"
    assert [f.kind for f in judged.against] == ["violation"] and not judged.acceptable
    assert judge(run, GateLimits(violations=1)).outcome == "pass"


def test_a_device_that_nobody_asked_did_not_agree() -> None:
    judged = judge(seen(graph()), GateLimits(violations=0))
    assert check(judged, "violations").message == "no device checked the graphs of this run"
    assert judged.outcome == "unknown"
    vague = judge(seen(graph(), refused("unknown")), GateLimits(violations=3))
    assert check(vague, "violations").outcome == "unknown"


@pytest.mark.parametrize(
    ("verdicts", "limit", "expected"),
    [
        (("pass", "pass"), 0, "pass"),
        (("pass", "fail"), 0, "fail"),
        (("pass", "fail"), 1, "pass"),
        (("fail", "unknown"), 1, "unknown"),
        (("unknown",), 0, "unknown"),
    ],
)
def test_differences(verdicts: tuple[str, ...], limit: int, expected: str) -> None:
    judged = judge(seen(*compared(*verdicts)), GateLimits(differences=limit))
    assert outcomes(judged) == {"differences": expected}


def test_values_that_agree_prove_nothing_where_nothing_was_compiled() -> None:
    outcome = DiffOutcome("toy", "eager", "inductor", "unknown", "nothing was compiled")
    run = seen(*compared("pass"), event(outcome, number=70))
    found = check(judge(run, GateLimits(differences=0)), "differences")
    assert (found.outcome, found.message) == ("unknown", "nothing was compiled")


def test_a_comparison_says_nothing_of_graph_breaks() -> None:
    judged = judge(seen(*compared("pass")), GateLimits(breaks=0, differences=0))
    assert outcomes(judged) == {"breaks": "unknown", "differences": "pass"}
    project = Project(max_breaks=0, max_differences=2)
    assert complete_for_numbers(GateLimits(), project) == GateLimits(differences=2)
    assert complete_for_numbers(GateLimits(), Project()) == GateLimits(differences=0)
