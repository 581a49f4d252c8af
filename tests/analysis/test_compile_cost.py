"""What each cause cost in compile time, and fifty guards of one cause as one."""

from __future__ import annotations

import pytest

from builders import event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import by_cost, findings
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompilePhases,
    CompileTime,
    FailedGuard,
    GraphBreak,
    Phase,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef

CODE = CodeRef(frame().file, 6, "forward")
OTHER = CodeRef(frame().file, 30, "encode")


def again(compile_id: str, code: CodeRef, *failed: FailedGuard) -> Event:
    entry = CacheEntryMiss(compile_id="0/0", failed=failed)
    return event(Recompile(code, (entry,)), compile_id=compile_id)


def spent(compile_id: str, seconds: float, phase: str = "forward") -> Event:
    body = CompileTime(duration_ns=int(seconds * 1e9), phase=phase)  # type: ignore[arg-type]
    return event(body, compile_id=compile_id)


def guard(subject: str, expected: str, actual: str) -> FailedGuard:
    return FailedGuard(f"{subject} == {expected}", subject, expected, actual, "CONSTANT_MATCH")


def test_a_recompile_costs_its_forward_and_its_backward() -> None:
    run = run_of(
        again("0/1", CODE, guard("self.calls", "0", "1")),
        spent("0/1_2", 2.0),
        spent("0/1", 0.5, "backward"),
        again("1/1", OTHER, guard("n", "3", "4")),
        spent("1/1", 4.0),
        spent("2/0", 9.0),
    )
    frames = digest(run).recompiles
    assert [(each.function, each.seconds) for each in frames] == [
        ("encode", 4.0),
        ("forward", 2.5),
    ]
    assert frames[1].causes[0].seconds == 2.5


def test_what_was_not_told_is_not_zero() -> None:
    (found,) = digest(run_of(again("0/1", CODE, guard("n", "3", "4")))).recompiles
    assert found.seconds is None and found.causes[0].seconds is None


def test_the_dearest_cause_comes_first() -> None:
    run = run_of(
        event(GraphBreak(gb_type="B", frame=CODE), stack=(frame(),), compile_id="3/0"),
        again("0/1", CODE, guard("self.calls", "0", "1")),
        spent("0/1", 2.0),
        again("1/1", OTHER, guard("n", "3", "4")),
        spent("1/1", 4.0),
    )
    found = by_cost(findings(digest(run)))
    assert [(each.kind, each.cost_seconds) for each in found] == [
        ("recompile", 4.0),
        ("recompile", 2.0),
        ("break", 0.0),
    ]


@pytest.mark.parametrize(("last_attempt", "seconds"), [(1, 0.25), (0, None)])
def test_only_tracing_that_was_thrown_away_counts(last_attempt: int, seconds: float) -> None:
    phases = tuple(
        Phase(f"compile_attempt_{number}", 0, 250_000_000) for number in range(last_attempt + 1)
    )
    run = run_of(
        event(
            GraphBreak(gb_type="B", frame=CODE, outcome="resumed"),
            stack=(frame(),),
            compile_id="0/0",
        ),
        event(CompilePhases(phases), compile_id="0/0"),
    )
    assert digest(run).sites[0].seconds == seconds


def test_the_same_change_in_every_layer_is_one_cause() -> None:
    subjects = [f"past.layers[{n}].{name}.size()[2]" for n in range(25) for name in ("k", "v")]
    run = run_of(
        again("0/1", CODE, *(guard(each, "12", "13") for each in subjects)), spent("0/1", 1.0)
    )
    (cause,) = digest(run).recompiles[0].causes
    assert cause.subject == subjects[0] and len(cause.also) == 24
    assert [len(each.also) for each in cause.together] == [24]
    assert len(findings(digest(run))) == 1


def test_a_recompile_is_one_cause_however_many_values_changed() -> None:
    run = run_of(
        again(
            "0/1",
            CODE,
            guard("self.calls", "0", "1"),
            guard("self.steps", "0", "1"),
            guard("layers[0].calls", "0", "1"),
            guard("layers[1].calls", "0", "2"),
            guard("x.size()[0]", "8", "4"),
            guard("y.size()[0]", "8", "4"),
        )
    )
    (cause,) = digest(run).recompiles[0].causes
    # A size explains more than the counts that changed with it.
    assert cause.subject == "x.size()[0]"
    assert [each.subject for each in cause.together] == [
        *("y.size()[0]", "self.calls", "self.steps", "layers[0].calls"),
    ]
    assert cause.together[-1].also == ("layers[1].calls",)
