"""How a run went: the time of a step, compile time and memory, from its start to its end.

A step is the time from one call of a compiled function to its next. Calls are counted in every run,
and their counts are written at each doubling: between two of them lie so many steps, and so much
time. Where something was compiled in between, no step is told.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from compilescope.knowledge.findings.compile_ids import Process, process_of
from compilescope.record.bodies import (
    CompileTime,
    MemoryTaken,
    ProcessEnded,
    RegionCalls,
    StepsProfiled,
)
from compilescope.record.event import Event
from compilescope.record.run import Run

_NS = 1e9
_MOST_POINTS = 200
"""Of a curve. Chosen: more than a page has room for."""
_LONG = 0.5
"""Of the longest stretch of steps: a function whose calls span so much is one that steps may be
counted by. Chosen: what is called in a warm-up or an evaluation alone is none."""


class CurvePoint(NamedTuple):
    """A value at a moment."""

    at: float
    """In seconds since the run's first event."""
    value: float


class _Count(NamedTuple):
    """So many calls by that time."""

    time_ns: int
    calls: int


class _Steps(NamedTuple):
    """Steps between two counts, nothing compiled among them."""

    start_ns: int
    end_ns: int
    steps: int

    @property
    def seconds(self) -> float:
        """Of one step."""
        return (self.end_ns - self.start_ns) / self.steps / _NS


def step_seconds(run: Run) -> float | None:
    """Of a step in steady state: as it was profiled, else over the longest stretch of steps. None:
    the program made too few."""
    profiled = [ns for _, body in run.of(StepsProfiled) for ns in body.step_ns]
    if profiled:
        return sum(profiled) / len(profiled) / _NS
    stretches = _steps(run)
    return max(stretches, key=lambda each: each.steps).seconds if stretches else None


def step_curve(run: Run) -> list[CurvePoint]:
    """Seconds of a step; a point stands at the end of its stretch."""
    start = _start(run)
    return [CurvePoint(_since(start, each.end_ns), each.seconds) for each in _steps(run)]


def compile_curve(run: Run) -> list[CurvePoint]:
    """Seconds spent compiling up to each moment, in all threads and processes."""
    start, spent, points = _start(run), 0.0, []
    for event, body in run.of(CompileTime):
        spent += body.duration_ns / _NS
        points.append(CurvePoint(_since(start, event.time_ns), spent))
    return _thinned(points)


def memory_curve(run: Run) -> list[CurvePoint]:
    """The most bytes that one process had taken by each moment: on its devices, where the run used
    any, else in all."""
    device = _uses_device(run)
    start, most, points = _start(run), 0, []
    for event, memory in _memory(run):
        most = max(most, (memory.device if device else memory.host) or 0)
        if most:
            points.append(CurvePoint(_since(start, event.time_ns), float(most)))
    return _thinned(points)


def peak_memory(run: Run) -> MemoryTaken:
    """Of the process that took most, by the system's count and on devices."""
    taken = [memory for _, memory in _memory(run)]
    return MemoryTaken(
        max((each.host for each in taken if each.host is not None), default=None),
        max((each.device for each in taken if each.device is not None), default=None),
    )


def _start(run: Run) -> int:
    return run.events[0].time_ns if run.events else 0


def _since(start_ns: int, time_ns: int) -> float:
    return round(max(time_ns - start_ns, 0) / _NS, 6)


def _memory(run: Run) -> Iterator[tuple[Event, MemoryTaken]]:
    """In the order of their times."""
    told = [
        *((event, body.memory) for event, body in run.of(CompileTime)),
        *((event, body.memory) for event, body in run.of(RegionCalls)),
        *((event, body.memory) for event, body in run.of(ProcessEnded)),
    ]
    found = [(event, memory) for event, memory in told if memory is not None]
    yield from sorted(found, key=lambda pair: pair[0].time_ns)


def _uses_device(run: Run) -> bool:
    return any(memory.device for _, memory in _memory(run))


def _steps(run: Run) -> list[_Steps]:
    """Of the function that is called once a step: of those whose calls span most of the time, the
    one that is called least often."""
    counted: dict[tuple[Process, int], list[_Count]] = defaultdict(list)
    for event, body in run.of(RegionCalls):
        # The last count is written at the end of the process, whatever the program did meanwhile.
        if body.calls & (body.calls - 1) == 0:
            counted[process_of(event), body.region].append(_Count(event.time_ns, body.calls))
    compiling = {process: _compiling(run, process) for process, _ in counted}
    found = [
        stretches
        for (process, _), counts in counted.items()
        if (stretches := list(_stretches(counts, compiling[process])))
    ]
    longest = max(map(_span, found), default=0)
    steps = [stretches for stretches in found if _span(stretches) >= _LONG * longest]
    return min(steps, key=lambda each: sum(stretch.steps for stretch in each), default=[])


def _span(stretches: Sequence[_Steps]) -> int:
    return sum(each.end_ns - each.start_ns for each in stretches)


class _Compiling(NamedTuple):
    """When compilations of a process began and ended, each sorted."""

    began: list[int]
    ended: list[int]

    def is_between(self, start_ns: int, end_ns: int) -> bool:
        return bisect_right(self.began, end_ns) > bisect_left(self.ended, start_ns)


def _compiling(run: Run, process: Process) -> _Compiling:
    ends = [
        (event.time_ns - body.duration_ns, event.time_ns)
        for event, body in run.of(CompileTime)
        if process_of(event) == process
    ]
    return _Compiling(sorted(began for began, _ in ends), sorted(ended for _, ended in ends))


def _stretches(counts: Sequence[_Count], compiling: _Compiling) -> Iterator[_Steps]:
    for before, after in itertools.pairwise(counts):
        steps, ns = after.calls - before.calls, after.time_ns - before.time_ns
        if steps > 0 and ns > 0 and not compiling.is_between(before.time_ns, after.time_ns):
            yield _Steps(before.time_ns, after.time_ns, steps)


def _thinned(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    """Every so many, and the last."""
    step = math.ceil(len(points) / _MOST_POINTS) or 1
    kept = list(points[::step])
    return kept if not points or kept[-1] == points[-1] else [*kept, points[-1]]
