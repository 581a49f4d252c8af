"""The timeline of a run: a lane for each thread, with bars for compilations and single moments.

What phases and functions took in all is at the end.

A run without phases (an older one, or one from a log) has bars for compilations only. Every
compilation has a bar; one whose end was never seen reaches to where it was last heard of.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable

import msgspec

from compilescope.knowledge.analysis.timeline.bars import (
    CompilationBar,
    Mark,
    RunSeen,
    ThreadSeen,
    TimelineBar,
    bars_of,
    mark_of,
)
from compilescope.knowledge.findings.compile_ids import (
    CompileKey,
    Process,
    compile_key,
    process_of,
    without_attempt,
)
from compilescope.record.bodies import (
    CacheAccess,
    CompileFailed,
    CompilePhases,
    CompileTime,
    GraphBreak,
    GraphCaptured,
    GuardSet,
    KernelEmitted,
    ProcessStarted,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, shown_code

OUTSIDE = "outside any phase"
UNKNOWN = "phases unknown"
ATTEMPT = "attempt"
_COMPILING = frozenset(
    (
        CacheAccess,
        CompileFailed,
        GraphBreak,
        GraphCaptured,
        GuardSet,
        KernelEmitted,
        Recompile,
    )
)
"""What is heard of a compilation only while it lasts."""
_MOST_TOLD = 50
"""Compilations of one id, before and after a moment, that it may belong to. Chosen: it bounds the
time for records that repeat one id without end."""
_NAMING = (CompileTime, GraphCaptured, GraphBreak, CompileFailed, Recompile)


class TimelineLane(msgspec.Struct, frozen=True, kw_only=True):
    """The bars and moments of one thread."""

    rank: int
    process: str
    """As in the ids of its events: pids alone may be those of several machines."""
    pid: int
    thread: int
    main: bool
    """The thread that the process began with."""
    bars: tuple[TimelineBar, ...]
    """In order of start, outer ones first; well nested."""
    marks: tuple[Mark, ...]
    """In order of time."""


class RunTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """All threads that compiled, by rank and process."""

    start_ns: int
    end_ns: int
    lanes: tuple[TimelineLane, ...]


class _Thread(msgspec.Struct, kw_only=True):
    rank: int
    main: bool = False
    seen: ThreadSeen
    marks: list[tuple[CompileKey | None, Mark]] = []


def timeline(run: Run) -> RunTimeline:
    threads: dict[tuple[Process, int], _Thread] = {}
    seen = RunSeen()
    ranks: dict[Process, int] = {}
    for event in run.events:
        ident = event.thread
        if type(event.body) is CompilePhases and event.body.thread is not None:
            ident = event.body.thread
        process = process_of(event)
        ranks[process] = event.rank  # A process may learn its rank late.
        thread = threads.get((process, ident))
        if thread is None:
            thread = threads[process, ident] = _Thread(rank=event.rank, seen=ThreadSeen())
        _note(event, process, thread, seen)
    lanes = []
    for (process, ident), thread in threads.items():
        bars, compilations = bars_of(thread.seen, seen)
        marks = _placed(thread.marks, compilations)
        if bars or marks:
            lane = TimelineLane(
                rank=ranks[process],
                process=process[0],
                pid=process[1],
                thread=ident,
                main=thread.main,
                bars=tuple(bars),
                marks=tuple(marks),
            )
            lanes.append(lane)
    lanes.sort(key=lambda lane: (lane.rank, lane.process, lane.pid, not lane.main, _first(lane)))
    return RunTimeline(
        start_ns=min(map(_first, lanes), default=0),
        end_ns=max(map(_last, lanes), default=0),
        lanes=tuple(lanes),
    )


def _first(lane: TimelineLane) -> int:
    return min([b.start_ns for b in lane.bars[:1]] + [m.time_ns for m in lane.marks[:1]])


def _last(lane: TimelineLane) -> int:
    return max([b.end_ns for b in lane.bars] + [m.time_ns for m in lane.marks[-1:]])


def _note(event: Event, process: Process, thread: _Thread, seen: RunSeen) -> None:
    body = event.body
    key = None
    if event.compile_id is not None:
        key = process, event.epoch, without_attempt(event.compile_id)
    mark = mark_of(event)
    if mark is not None:
        thread.marks.append((key, mark))
    if isinstance(body, ProcessStarted):
        thread.main = True
    elif isinstance(body, CompileTime):
        thread.seen.times.append((key, event.time_ns, body))
        if key is not None:
            seen.timed.add(key)
    elif isinstance(body, CompilePhases):
        for phase in body.phases:
            owner = compile_key(event, phase.compile_id) if phase.compile_id else key
            thread.seen.phases.append((owner, phase))
            if owner is not None:
                seen.phased.add(owner)
    if key is None:
        return
    if type(body) in _COMPILING:
        heard = thread.seen.heard.get(key)
        thread.seen.heard[key] = (heard[0] if heard else event.time_ns, event.time_ns)
    if key not in seen.codes and isinstance(body, _NAMING) and body.frame is not None:
        seen.codes[key] = shown_code(body.frame, event.stack)


def _near(told: list[CompilationBar], time_ns: int) -> Iterable[CompilationBar]:
    """Of one id; of very many only those around this time."""
    if len(told) <= _MOST_TOLD:
        return told
    first = bisect.bisect_left(told, time_ns, key=lambda one: one.told_ns)
    return told[max(first - _MOST_TOLD, 0) : first + _MOST_TOLD]


def _placed(
    marks: list[tuple[CompileKey | None, Mark]], compilations: list[CompilationBar]
) -> list[Mark]:
    """In order of time. A recompile is decided when the compilation begins, and told at its end."""
    by_key: dict[CompileKey | None, list[CompilationBar]] = {}
    for compilation in compilations:
        by_key.setdefault(compilation.key, []).append(compilation)
    placed = []
    for key, mark in marks:
        if mark.kind == "recompile" and key is not None:
            for compilation in _near(by_key.get(key, []), mark.time_ns):
                if compilation.start_ns <= mark.time_ns <= compilation.end_ns:
                    mark = msgspec.structs.replace(mark, time_ns=compilation.start_ns)
                    break
        placed.append(mark)
    return sorted(placed, key=lambda mark: mark.time_ns)


# Where compile time went: by phase and by function.


class PhaseTime(msgspec.Struct, kw_only=True):
    """All phases of one name."""

    name: str
    count: int = 0
    total_ns: int = 0
    """From begin to end; one within another of the same name counts once."""
    self_ns: int = 0
    """Without the phases within it. These add up to all the time."""


class FunctionTime(msgspec.Struct, kw_only=True):
    """All compilations of one code object."""

    name: str
    code: CodeRef | None
    compilations: int = 0
    backward: int = 0
    """How many of them were of its backward graph."""
    failed: int = 0
    total_ns: int = 0
    """Without compilations of other functions within it."""


def phase_times(timeline: RunTimeline) -> list[PhaseTime]:
    """Most time of their own first."""
    found: dict[str, PhaseTime] = {}
    for lane in timeline.lanes:
        path: list[str] = []
        inside: dict[str, int] = {}
        # The next one tells whether a bar has others within it.
        depths = [*(bar.depth for bar in lane.bars[1:]), 0]
        for bar, next_depth in zip(lane.bars, depths, strict=False):
            depth = bar.depth
            while len(path) > depth:
                inside[path.pop()] -= 1
            leaf = next_depth <= depth
            name = _name(bar, leaf)
            entry = found.get(name)
            if entry is None:
                entry = found[name] = PhaseTime(name=name)
            entry.self_ns += bar.self_ns
            around = inside.get(name, 0)
            if leaf or bar.kind != "compilation":
                entry.count += 1
                if not around:
                    entry.total_ns += bar.end_ns - bar.start_ns
            path.append(name)
            inside[name] = around + 1
    outside = found.get(OUTSIDE)
    if outside is not None:
        outside.total_ns = outside.self_ns
    shown = [entry for entry in found.values() if entry.count or entry.self_ns]
    return sorted(shown, key=lambda entry: -entry.self_ns)


def _name(bar: TimelineBar, leaf: bool) -> str:
    if bar.kind == "compilation":
        return UNKNOWN if leaf else OUTSIDE
    return ATTEMPT if bar.kind == "attempt" else bar.name


def function_times(timeline: RunTimeline) -> list[FunctionTime]:
    """Most time first."""
    found: dict[tuple[str, CodeRef | None], FunctionTime] = {}
    for lane in timeline.lanes:
        around: list[tuple[int, FunctionTime]] = []
        for bar in lane.bars:
            if bar.kind != "compilation":
                continue
            while around and around[-1][0] >= bar.depth:
                around.pop()
            key = (bar.name, bar.code)
            entry = found.get(key)
            if entry is None:
                entry = found[key] = FunctionTime(name=bar.name, code=bar.code)
            entry.compilations += 1
            entry.backward += bar.direction == "backward"
            entry.failed += bar.ok is False
            entry.total_ns += bar.duration_ns
            if around:
                around[-1][1].total_ns -= bar.duration_ns
            around.append((bar.depth, entry))
    return sorted(found.values(), key=lambda entry: -entry.total_ns)
