"""Where compile time went: the parts add up, and nothing counts twice."""

from __future__ import annotations

import pytest

from builders import event, frame, run_of
from compilescope.knowledge.analysis.compile_shares import compile_shares
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
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
REST = CodeRef(frame().file, 6, "forward", resumed_at=8)


def spent(compile_id: str, seconds: float, *, ok: bool = True) -> Event:
    return event(CompileTime(duration_ns=int(seconds * 1e9), ok=ok), compile_id=compile_id)


def again(compile_id: str, code: CodeRef, subject: str) -> Event:
    failed = FailedGuard(f"{subject} == 1", subject, "1", "2", "CONSTANT_MATCH")
    return event(Recompile(code, (CacheEntryMiss("0/0", (failed,)),)), compile_id=compile_id)


def broken(compile_id: str, seconds: float) -> list[Event]:
    """The first attempt was thrown away at a break."""
    body = GraphBreak(gb_type="B", frame=CODE, outcome="resumed")
    attempts = (
        Phase("compile_attempt_0", 0, int(seconds * 1e9)),
        Phase("compile_attempt_1", 0, int(seconds * 1e9)),
    )
    return [
        event(body, stack=(frame(),), compile_id=compile_id),
        event(CompilePhases(attempts), compile_id=compile_id),
    ]


def shares(*events: Event) -> list[tuple[str, str, float]]:
    run = run_of(*events)
    return [
        (each.kind, each.label, pytest.approx(each.seconds))
        for each in compile_shares(run, digest(run))
    ]


def test_each_kind_once_and_all_of_it() -> None:
    assert shares(
        spent("0/0", 4.0),
        *broken("0/0", 1.0),
        again("0/1", CODE, "n"),
        spent("0/1", 2.0),
        event(CompileFailed("ValueError", "no", frame=CODE), compile_id="1/0"),
        spent("1/0", 0.5, ok=False),
    ) == [
        ("useful", "", 3.0),
        ("recompile", "forward: n", 2.0),
        ("failed", "", 0.5),
        ("break", "", 1.0),
    ]


def test_a_break_within_a_recompile_is_the_recompiles() -> None:
    assert shares(
        spent("0/0", 1.0), again("0/1", CODE, "n"), spent("0/1", 3.0), *broken("0/1", 1.0)
    ) == [("useful", "", 1.0), ("recompile", "forward: n", 3.0)]


def test_one_value_guarded_in_two_parts_of_its_function_is_one_cause() -> None:
    assert shares(
        again("0/1", CODE, "n"), spent("0/1", 1.0), again("1/1", REST, "n"), spent("1/1", 2.0)
    ) == [("useful", "", 0.0), ("recompile", "forward: n", 3.0)]


def test_a_function_given_up_at_a_break_is_lost_to_it_as_a_whole() -> None:
    body = GraphBreak(gb_type="B", frame=CODE, outcome="frame-eager")
    given_up = event(body, stack=(frame(),), compile_id="0/0")
    assert shares(given_up, spent("0/0", 2.0, ok=False)) == [
        ("useful", "", 0.0),
        ("break", "", 2.0),
    ]


def test_a_record_without_times_has_no_shares() -> None:
    assert shares(again("0/1", CODE, "n")) == []
