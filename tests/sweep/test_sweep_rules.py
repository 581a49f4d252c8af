"""What a sweep's jobs come to together."""

from __future__ import annotations

import msgspec

from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.doubts import doubts
from compilescope.knowledge.analysis.gate.verdict import (
    NOTHING_LOST,
    AcceptedFinding,
    GateLimits,
    Judgement,
    judge,
)
from compilescope.knowledge.analysis.sweeps import regressions, sweep_of
from compilescope.record.jobs import JobEnded
from sweep_samples import BREAK, ECHO, JOBS, SIZES, job, sweep_run


def judged(*jobs: JobEnded, baseline: tuple[AcceptedFinding, ...] | None = None) -> Judgement:
    limits = NOTHING_LOST if baseline is None else GateLimits()
    return judge(digest(sweep_run(*jobs)), limits, baseline=baseline)


def known(*jobs: JobEnded) -> tuple[AcceptedFinding, ...]:
    found = findings(digest(sweep_run(*jobs)))
    return tuple(AcceptedFinding(kind=each.kind, fingerprint=each.fingerprint) for each in found)


def test_states_pass_rate_and_clean_jobs() -> None:
    sweep = sweep_of(sweep_run())
    assert sum(sweep.states.values()) == len(JOBS)
    assert sweep.states["ok"] == 4 and sweep.states["failed"] == 2
    # Nothing is known of jobs that were unbuilt, lost or cancelled.
    assert sweep.pass_rate == 4 / 9
    assert sweep.clean == 1, "a job that compiled nothing is not clean"
    assert sweep_of(sweep_run(job("a", "unbuilt"))).pass_rate is None


def test_causes_by_rule_with_the_models_that_they_hit() -> None:
    first, second, third = sweep_of(sweep_run()).causes
    assert (first.rule, first.models) == ("GB0170", ("branching", "also-branching"))
    assert (second.rule, second.models) == ("recompile/size-change", ("also-branching", "killed"))
    assert first.fix == "where-for-if" and second.fix == ""
    assert third.rule == "GB0033"


def test_a_fix_frees_a_job_only_where_it_is_the_advice_for_every_cause() -> None:
    (fix,) = sweep_of(sweep_run()).fixes
    assert fix.some == ("branching", "also-branching")
    assert fix.all == ("branching",), "what follows from another break goes away with it"


def test_the_same_reason_is_one_whatever_names_it_has() -> None:
    reasons = sweep_of(sweep_run()).reasons
    assert reasons[0].models == ("wrong", "also-wrong")
    assert len(reasons) == 7


def test_regressions_go_by_job_and_fingerprint() -> None:
    before = sweep_of(
        sweep_run(job("a", causes=(BREAK,)), job("b"), job("c", causes=(SIZES,)), job("old"))
    )
    after = sweep_of(
        sweep_run(
            job("a", causes=(BREAK, ECHO)),
            job("b", causes=(BREAK,)),
            job("c", "timeout", reason="Too slow."),
            job("added", causes=(BREAK,)),
        )
    )
    seen = regressions(before, after)
    assert [(each.job, each.cause.rule) for each in seen.new] == [("a", "GB0033"), ("b", "GB0170")]
    assert [(each.job, each.cause.rule) for each in seen.gone] == [("c", "recompile/size-change")]
    assert seen.same == 1
    assert [(each.job, each.before, each.after) for each in seen.states] == [("c", "ok", "timeout")]
    assert seen.states[0].worse
    assert (seen.added, seen.removed) == (("added",), ("old",))


def test_a_job_that_was_not_tried_is_not_compared() -> None:
    before = sweep_of(sweep_run(job("a", causes=(BREAK,))))
    after = sweep_of(sweep_run(job("a", "lost")))
    seen = regressions(before, after)
    assert seen.unknown == ("a",) and not seen.gone and seen.states


def test_equal_sweeps_are_equal() -> None:
    seen = regressions(sweep_of(sweep_run()), sweep_of(sweep_run()))
    assert seen.equal and seen.same == 5


def test_limits_apply_to_sums_and_jobs_that_are_not_ok_are_failures() -> None:
    judgement = judged()
    found = {check.name: check.found for check in judgement.checks if check.limit is not None}
    assert found == {"unbuilt": 1, "breaks": 3, "recompiles": 3, "eager": 1, "failures": 5}
    assert judgement.outcome == "fail"
    rules = {finding.rule_id for finding in judgement.against}
    assert "job/timeout" in rules and "job/lost" not in rules


def test_a_failed_compilation_that_ended_its_job_counts_once() -> None:
    failed = msgspec.structs.replace(BREAK, kind="failure", rule="failure/RuntimeError")
    judgement = judged(job("a", "failed", causes=(failed,), failures=1, graphs=1))
    failures = next(check for check in judgement.checks if check.name == "failures")
    assert failures.found == 1
    assert [finding.rule_id for finding in failures.findings] == ["failure/RuntimeError"]


def test_what_was_not_tried_is_never_a_pass() -> None:
    for state in ("unbuilt", "lost", "cancelled"):
        assert judged(job("a"), job("b", state)).outcome == "unknown", state
    assert judged(job("a"), job("b")).outcome == "pass"
    assert judged(job("a", graphs=0)).outcome == "unknown", "nothing was compiled"


def test_a_baseline_accepts_causes_failed_jobs_and_models_that_cannot_be_built() -> None:
    jobs = (job("a", causes=(BREAK,)), job("b", "timeout"), job("c", "unbuilt"))
    assert judged(*jobs, baseline=known(*jobs)).outcome == "pass"
    assert judged(*jobs, baseline=known(*jobs[:2])).outcome == "unknown"
    assert judged(*jobs, baseline=known(*jobs[1:])).outcome == "fail"
    worse = (jobs[0], job("b", "crashed"), jobs[2])
    assert [f.rule_id for f in judged(*worse, baseline=known(*jobs)).new] == ["job/crashed"]


def test_a_sweep_is_no_program_without_torch() -> None:
    seen = digest(sweep_run())
    assert seen.torch == "2.13.0" and seen.graphs == 5
    assert {doubt.name for doubt in doubts(seen)} == {"lost", "cancelled"}
    assert seen.ended.text == "The sweep was stopped before all jobs had ended."
