"""Bars are well nested, every compilation has one, and what is not known is not made up."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.timeline.bars import TimelineBar, TimeStretch, nested
from compilescope.knowledge.analysis.timeline.lanes import (
    OUTSIDE,
    UNKNOWN,
    RunTimeline,
    function_times,
    phase_times,
    timeline,
)
from compilescope.knowledge.findings.compile_ids import without_attempt
from compilescope.record.bodies import (
    CacheAccess,
    CacheEntryMiss,
    CompilePhases,
    CompileTime,
    FailedGuard,
    GraphBreak,
    GraphCaptured,
    Phase,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")
OTHER = CodeRef(f"{ROOT}/model.py", 20, "loss")


def assert_well_nested(seen: RunTimeline) -> None:
    for lane in seen.lanes:
        path: list[TimelineBar] = []
        for bar in lane.bars:
            assert seen.start_ns <= bar.start_ns <= bar.end_ns <= seen.end_ns
            elder = path[bar.depth] if len(path) > bar.depth else None
            del path[bar.depth :]
            assert len(path) == bar.depth
            if path:
                assert path[-1].start_ns <= bar.start_ns
                assert bar.end_ns <= path[-1].end_ns
            if elder is not None:
                assert elder.end_ns <= bar.start_ns or elder.start_ns == elder.end_ns
            path.append(bar)
        assert sum(bar.self_ns for bar in lane.bars) == sum(
            bar.duration_ns for bar in lane.bars if bar.depth == 0
        )
        assert all(bar.self_ns >= 0 for bar in lane.bars)


def assert_every_compilation_is_there(run: Run, seen: RunTimeline) -> None:
    told = {(e.pid, without_attempt(e.compile_id)) for e in run.events if e.compile_id is not None}
    drawn = {
        (lane.pid, bar.compile_id)
        for lane in seen.lanes
        for bar in lane.bars
        if bar.kind == "compilation"
    }
    assert told <= drawn


def at(time_ns: int, body: Any, **fields: Any) -> Event:
    return event(body, number=0, time_ns=time_ns, thread=1, **fields)


def bars(run: Run) -> list[tuple[str, str, int, int, int]]:
    (lane,) = timeline(run).lanes
    return [(b.kind, b.name, b.start_ns, b.end_ns, b.depth) for b in lane.bars]


def test_an_empty_run_has_no_lanes() -> None:
    assert timeline(run_of()).lanes == ()


def test_without_phases_a_compilation_is_one_bar() -> None:
    run = run_of(
        at(2000, CompileTime(duration_ns=500, frame=CODE), compile_id="0/0"),
        at(3000, CompileTime(duration_ns=400, phase="backward"), compile_id="0/0"),
        at(4000, CompileTime(duration_ns=300, frame=OTHER, ok=False), compile_id="1/0_1"),
    )
    assert bars(run) == [
        ("compilation", "forward", 1500, 2000, 0),
        ("compilation", "forward", 2600, 3000, 0),
        ("compilation", "loss", 3700, 4000, 0),
    ]
    (lane,) = timeline(run).lanes
    assert [bar.direction for bar in lane.bars] == ["forward", "backward", "forward"]
    assert [bar.ok for bar in lane.bars] == [True, True, False]
    assert [bar.compile_id for bar in lane.bars] == ["0/0", "0/0", "1/0"]
    assert [entry.name for entry in phase_times(timeline(run))] == [UNKNOWN]
    assert_every_compilation_is_there(run, timeline(run))


def phased_run() -> Run:
    """One function compiled in two attempts, then its backward; told a little late each time."""
    forward = CompilePhases(
        (
            Phase("dynamo", 1000, 900),
            Phase("entire_frame_compile", 1010, 880, 1),
            Phase("compile_attempt_0", 1020, 200, 2),
            Phase("compile_attempt_1", 1230, 400, 2),
            Phase("backend_compile", 1300, 300, 3, detail="cache hit"),
        )
    )
    backward = CompilePhases((Phase("entire_backward_compile", 3010, 480),))
    told = CompileTime(duration_ns=870, frame=CODE, restarts=("Because\n  of that",))
    return run_of(
        at(1210, GraphBreak("Because", "GB0170", frame=CODE), compile_id="0/0", stack=(frame(),)),
        at(1350, CacheAccess("fx_graph", "hit"), compile_id="0/0_1"),
        at(1895, told, compile_id="0/0_1"),
        at(1901, forward, compile_id="0/0"),
        at(3495, backward, compile_id="0/0"),
        at(3510, CompileTime(duration_ns=505, phase="backward"), compile_id="0/0"),
    )


def test_phases_lie_in_their_compilation() -> None:
    run = phased_run()
    assert bars(run) == [
        ("compilation", "forward", 1000, 1900, 0),
        ("phase", "dynamo", 1000, 1900, 1),
        ("phase", "entire_frame_compile", 1010, 1890, 2),
        ("attempt", "attempt 1", 1020, 1220, 3),
        ("attempt", "attempt 2", 1230, 1630, 3),
        ("phase", "backend_compile", 1300, 1600, 4),
        ("compilation", "forward", 3005, 3510, 0),
        ("phase", "entire_backward_compile", 3010, 3490, 1),
    ]
    assert_well_nested(timeline(run))


def test_the_attempt_that_was_given_up_tells_why() -> None:
    (lane,) = timeline(phased_run()).lanes
    reasons = {bar.name: bar.reason for bar in lane.bars if bar.kind == "attempt"}
    assert reasons == {"attempt 1": "Because", "attempt 2": ""}
    assert lane.bars[0].reason == "Because"


def test_of_several_reasons_none_is_pinned_on_an_attempt() -> None:
    phases = CompilePhases(
        (
            Phase("dynamo", 0, 100),
            *(Phase(f"compile_attempt_{n}", 10 + 20 * n, 10, 1) for n in range(3)),
        )
    )
    told = CompileTime(duration_ns=90, frame=CODE, restarts=("A", "B"))
    run = run_of(at(95, told, compile_id="0/0"), at(101, phases, compile_id="0/0"))
    (lane,) = timeline(run).lanes
    assert lane.bars[0].reason == "A; B"
    assert {bar.reason for bar in lane.bars if bar.kind == "attempt"} == {""}


def test_moments_are_there() -> None:
    (lane,) = timeline(phased_run()).lanes
    assert [(m.kind, m.name, m.time_ns) for m in lane.marks] == [
        ("break", "graph break GB0170", 1210),
        ("cache", "Inductor cache hit", 1350),
    ]


def test_a_recompile_is_shown_where_it_was_decided() -> None:
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3")
    body = Recompile(CODE, (CacheEntryMiss("0/0", (guard,)),))
    told = CompileTime(duration_ns=500, frame=CODE)
    run = run_of(at(1990, body, compile_id="0/1"), at(2000, told, compile_id="0/1"))
    (lane,) = timeline(run).lanes
    (mark,) = lane.marks
    assert (mark.kind, mark.time_ns) == ("recompile", 1500)
    assert mark.detail == "x.size()[0]: expected 2, got 3"


def test_phases_of_an_id_outside_its_compilations_are_no_compilation() -> None:
    """Autotuning at run time names the compilation that it belongs to."""
    run = run_of(
        at(1000, CompileTime(duration_ns=100, frame=CODE), compile_id="0/0"),
        at(5000, CompilePhases((Phase("tune", 4000, 500),)), compile_id="0/0"),
    )
    assert [(kind, name) for kind, name, *_ in bars(run)] == [
        ("compilation", "forward"),
        ("phase", "tune"),
    ]


def test_a_compilation_that_was_told_late_still_has_its_phases() -> None:
    """Between the end of a backward compilation and its event another process had the machine."""
    phases = CompilePhases((Phase("entire_backward_compile", 1000, 500),))
    run = run_of(
        at(1600, phases, compile_id="0/0"),
        at(9000, CompileTime(duration_ns=700, phase="backward", frame=CODE), compile_id="0/0"),
    )
    assert bars(run) == [
        ("compilation", "forward", 1000, 1700, 0),
        ("phase", "entire_backward_compile", 1000, 1500, 1),
    ]


def test_a_compilation_within_another_has_a_bar_of_its_own() -> None:
    phases = CompilePhases(
        (
            Phase("dynamo", 0, 100),
            Phase("backend_compile", 10, 80, 1),
            Phase("dynamo", 20, 50, 2, "1/0"),
            Phase("gc", 30, 10, 3, "1/0"),
        )
    )
    run = run_of(
        at(40, GraphCaptured(stage="dynamo", ops=1, frame=OTHER), compile_id="1/0"),
        at(95, CompileTime(duration_ns=90, frame=CODE), compile_id="0/0"),
        at(101, phases, compile_id="0/0"),
    )
    assert [(kind, name, depth) for kind, name, _, _, depth in bars(run)] == [
        ("compilation", "forward", 0),
        ("phase", "dynamo", 1),
        ("phase", "backend_compile", 2),
        ("compilation", "loss", 3),
        ("phase", "dynamo", 4),
        ("phase", "gc", 5),
    ]
    times = {entry.name: entry.total_ns for entry in function_times(timeline(run))}
    assert times == {"forward": 50, "loss": 50}


def test_a_compilation_that_was_cut_short_is_shown_as_far_as_known() -> None:
    run = run_of(
        at(100, GraphCaptured(stage="dynamo", ops=1, frame=CODE), compile_id="0/0"),
        at(300, CacheAccess("fx_graph", "miss"), compile_id="0/0"),
        ended=False,
    )
    (lane,) = timeline(run).lanes
    (bar,) = lane.bars
    assert (bar.start_ns, bar.end_ns, bar.ended, bar.ok) == (100, 300, False, None)
    assert_every_compilation_is_there(run, timeline(run))


def test_lanes_by_rank_process_and_thread() -> None:
    told = CompileTime(duration_ns=10, frame=CODE)
    loose = CompilePhases((Phase("compile_file", 50, 10),), thread=9)
    events = [
        event(told, time_ns=100, thread=1, compile_id="0/0"),
        event(told, time_ns=200, thread=2, compile_id="1/0"),
        event(loose, time_ns=200, thread=1),
        event(told, time_ns=100, thread=1, pid=101, rank=1, compile_id="0/0"),
    ]
    found = [(lane.rank, lane.pid, lane.thread) for lane in timeline(run_of(*events)).lanes]
    assert found == [(0, 100, 9), (0, 100, 1), (0, 100, 2), (1, 101, 1)]


def test_a_clock_that_is_set_back_breaks_no_nesting() -> None:
    phases = (
        Phase("dynamo", 1000, 100),
        Phase("sticks out", 1050, 500, 1),
        Phase("before its parent", 900, 150, 1),
        Phase("dynamo", 1080, 100),
        Phase("backwards", 1090, 0, 1),
    )
    run = run_of(
        at(1095, CompileTime(duration_ns=300, frame=CODE), compile_id="0/0"),
        at(1100, CompilePhases(phases), compile_id="0/0"),
    )
    assert_well_nested(timeline(run))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_overlaps_is_nested(seed: int) -> None:
    import random

    dice = random.Random(seed)
    stretches = []
    for _ in range(60):
        start = dice.randrange(100)
        stretches.append(TimeStretch(start, start + dice.choice((0, 1, 5, 40)), "x"))
    found = nested(stretches)
    assert len(found) == 60
    for stretch in found:
        if stretch.parent is not None:
            outer = found[stretch.parent]
            assert outer.start_ns <= stretch.start_ns <= stretch.end_ns <= outer.end_ns
            assert stretch.depth == outer.depth + 1
    for depth in range(max(s.depth for s in found) + 1):
        level = [s for s in found if s.depth == depth]
        for one, two in itertools.pairwise(level):
            assert one.end_ns <= two.start_ns or one.parent != two.parent


def test_own_times_add_up_and_totals_count_once() -> None:
    phases = CompilePhases(
        (Phase("dynamo", 0, 100), Phase("pass", 10, 50, 1), Phase("pass", 20, 20, 2))
    )
    run = run_of(
        at(90, CompileTime(duration_ns=80, frame=CODE), compile_id="0/0"),
        at(110, phases, compile_id="0/0"),
    )
    times = {entry.name: entry for entry in phase_times(timeline(run))}
    assert times["pass"].total_ns == 50
    assert (times["pass"].count, times["pass"].self_ns) == (2, 50)
    assert times["dynamo"].self_ns == 50
    assert OUTSIDE not in times or times[OUTSIDE].self_ns == 0
    assert sum(entry.self_ns for entry in times.values()) == 100


PROGRAMS = (
    "backend_error_suppressed", "backward_error", "break_in_aot_eager", "deep_chain",
    "generator_compiled", "recompile_after_break", "recompile_limit", "reset_between",
    "two_threads", "whole_train_step",
)  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_real_programs(name: str) -> None:
    pytest.importorskip("torch")
    from analysis.real_programs import captured

    run = captured(name)
    found = timeline(run)
    assert_well_nested(found)
    assert_every_compilation_is_there(run, found)
    compiled = [b for lane in found.lanes for b in lane.bars if b.kind == "compilation"]
    assert len(compiled) == run.count(CompileTime)
    # Phases were seen of each, and its function is known.
    for lane in found.lanes:
        for number, bar in enumerate(lane.bars):
            if bar.kind == "compilation":
                assert lane.bars[number + 1].depth == bar.depth + 1
                assert bar.code is not None
