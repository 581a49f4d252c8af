"""A run's timeline as a Chrome trace: for Perfetto's viewer, chrome://tracing and Speedscope.

The JSON of the Trace Event Format. Nothing is left out. Times are whole microseconds since the
timeline's beginning, both ends rounded down, so that what was nested stays nested.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from compilescope.base.texts import plain_json
from compilescope.knowledge.analysis.timeline.bars import Mark, TimelineBar
from compilescope.knowledge.analysis.timeline.lanes import RunTimeline, TimelineLane, timeline
from compilescope.knowledge.findings.compile_ids import Process, process_of
from compilescope.record.bodies import ProcessStarted, StepsProfiled
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef
from compilescope.report.places import place
from compilescope.report.timeline_view import bar_label


def to_trace(run: Run) -> bytes:
    """The whole timeline as one JSON document."""
    seen = timeline(run)
    trace = {
        "displayTimeUnit": "ms",
        "otherData": {
            "run": run.header.run,
            "command": " ".join(run.header.command),
            "torch": run.torch_version or "",
            "begins_at_unix_ns": str(seen.start_ns),
            "made_by": "compilescope",
        },
        "traceEvents": [*_events(run, seen), *_profiled(run, seen.start_ns)],
    }
    return plain_json(trace).encode()


def _profiled(run: Run, origin_ns: int) -> Iterator[dict[str, Any]]:
    if run.count(StepsProfiled):
        from compilescope.report.step_trace import step_events

        yield from step_events(run, origin_ns)


def _events(run: Run, seen: RunTimeline) -> Iterator[dict[str, Any]]:
    programs = {process_of(event): body for event, body in run.of(ProcessStarted)}
    pids = _pids(seen)
    threads: dict[Process, int] = {}
    for lane in seen.lanes:
        process = (lane.process, lane.pid)
        pid = pids[process]
        if process not in threads:
            yield from _process_names(lane, pid, _program(programs.get(process), run))
        threads[process] = number = threads.get(process, 0) + 1
        yield from _thread_names(lane, pid, number)
        where = {"pid": pid, "tid": number}
        for bar in lane.bars:
            yield {**_bar(bar, seen.start_ns, run.header.root), **where}
        for mark in lane.marks:
            yield {**_mark(mark, seen.start_ns, run.header.root), **where}


def _pids(seen: RunTimeline) -> dict[Process, int]:
    """The real ones; processes of several machines may share one, and then take the next free."""
    pids: dict[Process, int] = {}
    taken: set[int] = set()
    for lane in seen.lanes:
        process = (lane.process, lane.pid)
        if process not in pids:
            pid = lane.pid
            while pid in taken:
                pid += 1
            taken.add(pid)
            pids[process] = pid
    return pids


def _program(started: ProcessStarted | None, run: Run) -> str:
    """The script, without the interpreter in front of it."""
    words = list(started.argv if started is not None else run.header.command)
    if len(words) > 1 and os.path.basename(words[0]).startswith("python"):
        words = words[1:]
    return " ".join(os.path.basename(word) for word in words[:1]) or "program"


def _process_names(lane: TimelineLane, pid: int, program: str) -> Iterator[dict[str, Any]]:
    name = f"rank {lane.rank}: {program} (pid {lane.pid})"
    yield _name("process_name", pid, 0, name=name)
    yield _name("process_sort_index", pid, 0, sort_index=lane.rank)


def _thread_names(lane: TimelineLane, pid: int, number: int) -> Iterator[dict[str, Any]]:
    name = "main thread" if lane.main else f"thread {number} ({lane.thread})"
    yield _name("thread_name", pid, number, name=name)
    yield _name("thread_sort_index", pid, number, sort_index=number)


def _name(what: str, pid: int, tid: int, **args: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args}


def _bar(bar: TimelineBar, origin_ns: int, root: str) -> dict[str, Any]:
    start = (bar.start_ns - origin_ns) // 1000
    args = {
        "compile id": bar.compile_id,
        **_code(bar.code, root),
        "direction": bar.direction if bar.kind == "compilation" else None,
        "compiled": bar.ok,
        "traced again because": bar.reason,
        "detail": bar.detail,
        "end seen": None if bar.ended else False,
    }
    return {
        "name": bar_label(bar),
        "cat": bar.kind,
        "ph": "X",
        "ts": start,
        "dur": (bar.end_ns - origin_ns) // 1000 - start,
        "args": _told(args),
    }


def _mark(mark: Mark, origin_ns: int, root: str) -> dict[str, Any]:
    site = mark.event.site
    args = {
        "compile id": mark.event.compile_id,
        "place": place(site.file, site.line, root) if site else None,
        "reason": mark.detail,
        "event": mark.event.id,
    }
    return {
        "name": mark.name,
        "cat": mark.kind,
        "ph": "i",
        "s": "t",
        "ts": (mark.time_ns - origin_ns) // 1000,
        "args": _told(args),
    }


def _code(code: CodeRef | None, root: str) -> dict[str, Any]:
    if code is None:
        return {}
    return {
        "function": code.function,
        "place": place(code.file, code.line, root),
        "from line": code.resumed_at,
    }


def _told(args: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in args.items() if value is not None and value != ""}
