"""Step time, compile time and memory over the time of a run."""

from __future__ import annotations

import pytest

from builders import event, run_of
from compilescope.knowledge.analysis.figures import figures
from compilescope.knowledge.analysis.run_curves import (
    compile_curve,
    memory_curve,
    peak_memory,
    step_curve,
    step_seconds,
)
from compilescope.record.bodies import (
    Body,
    CompileTime,
    MemoryTaken,
    ProcessEnded,
    RegionCalls,
    StepsProfiled,
)
from compilescope.record.run import Run

SECOND = 10**9
MIB = 1 << 20


def run_at(*told: tuple[float, Body], pid: int = 100) -> Run:
    """Each at so many seconds from the first event on, which is at 0."""
    events = [event(body, time_ns=int(at * SECOND), pid=pid) for at, body in told]
    return run_of(event(CompileTime(0), time_ns=0), *events, ended=False)


def calls(region: int, *counts: tuple[float, int]) -> list[tuple[float, Body]]:
    return [(at, RegionCalls(region, number)) for at, number in counts]


def test_a_step_is_the_time_between_two_counts() -> None:
    run = run_at(*calls(0, (10, 16), (12, 32), (13.6, 64), (90, 100)))
    assert step_curve(run) == [(12.0, 0.125), (13.6, pytest.approx(0.05))]
    # The end of the process is no step: who knows what it did before.
    assert step_seconds(run) == pytest.approx(0.05)
    assert figures(run).step_seconds == pytest.approx(0.05)


def test_steps_with_a_compilation_among_them_are_not_told() -> None:
    compiled = (13.0, CompileTime(SECOND // 2))
    run = run_at(*calls(0, (10, 16), (12, 32), (13.6, 64), (14, 128)), compiled)
    assert [point.at for point in step_curve(run)] == [12.0, 14.0]


def test_the_function_that_is_called_once_a_step_counts() -> None:
    """A layer is called often in each; what a warm-up calls is over soon."""
    layer = calls(1, (10, 16), (10.5, 32), (11, 64), (30, 1024), (50, 2048))
    step = calls(0, (10, 16), (20, 32), (40, 64))
    warm_up = calls(2, (1, 16), (1.1, 32))
    run = run_at(*layer, *step, *warm_up)
    assert step_seconds(run) == pytest.approx(20 / 32)


def test_profiled_steps_are_the_better_measure() -> None:
    profiled = (15.0, StepsProfiled(steps=2, step_ns=(SECOND, 3 * SECOND)))
    assert step_seconds(run_at(*calls(0, (10, 16), (12, 32)), profiled)) == 2.0


def test_too_few_calls_have_no_step() -> None:
    run = run_at(*calls(0, (10, 16), (12, 20)))
    assert step_seconds(run) is None and step_curve(run) == []


def test_compile_time_adds_up() -> None:
    run = run_at((2, CompileTime(SECOND)), (5, CompileTime(2 * SECOND)))
    assert compile_curve(run) == [(0.0, 0.0), (2.0, 1.0), (5.0, 3.0)]


def test_memory_is_the_most_so_far_on_the_device_where_one_was_used() -> None:
    host = run_at(
        (1, CompileTime(1, memory=MemoryTaken(3 * MIB))),
        (2, RegionCalls(0, 16, MemoryTaken(2 * MIB))),
        (3, ProcessEnded(memory=MemoryTaken(9 * MIB))),
    )
    assert memory_curve(host) == [(1.0, 3 * MIB), (2.0, 3 * MIB), (3.0, 9 * MIB)]
    assert peak_memory(host) == MemoryTaken(9 * MIB)
    assert (figures(host).peak_bytes, figures(host).on_device) == (9 * MIB, False)
    device = run_at(
        (1, CompileTime(1, memory=MemoryTaken(3 * MIB))),
        (2, ProcessEnded(memory=MemoryTaken(4 * MIB, MIB))),
    )
    assert memory_curve(device) == [(2.0, MIB)]
    assert (figures(device).peak_bytes, figures(device).on_device) == (MIB, True)


def test_a_long_run_has_so_many_points_and_its_end() -> None:
    run = run_at(*((at, CompileTime(SECOND)) for at in range(1, 1001)))
    points = compile_curve(run)
    assert len(points) <= 201 and points[-1] == (1000.0, 1000.0)


def test_an_empty_run_has_none() -> None:
    run = run_of()
    assert step_seconds(run) is None and peak_memory(run) == MemoryTaken()
    assert compile_curve(run) == memory_curve(run) == []
