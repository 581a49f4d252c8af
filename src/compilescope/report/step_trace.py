"""The profiled steps of a run in a Chrome trace: kernels and operators, each with the user's line.

A process of its own in the viewer, which ends when the profile was written: the profiler's clock
and ours have no common beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.knowledge.analysis.step_kernels import kernels_by_profile
from compilescope.knowledge.profiles.calls import Calls, StepPlaces, read_places
from compilescope.knowledge.profiles.step_profile import profiles_of
from compilescope.knowledge.profiles.trace import Trace, read_stored
from compilescope.record.bodies import StepsProfiled
from compilescope.record.run import Run
from compilescope.report.places import place

_PID = 2_000_000_000
"""Beyond those of real processes; the rank is added."""


def step_events(run: Run, origin_ns: int) -> Iterator[dict[str, Any]]:
    """Of all processes that were profiled."""
    lines: dict[str, str] = {}
    for kernels in kernels_by_profile(run, profiles_of(run)):
        for kernel in kernels:
            if kernel.lines:
                shown = (place(at.file, at.line, run.header.root) for at in kernel.lines)
                lines.setdefault(kernel.row.name, ", ".join(shown))
    for event, body in run.of(StepsProfiled):
        text = run.artifacts.get(body.trace) if body.trace else None
        if not text:
            continue
        try:
            trace = read_stored(text)
        except ToolError:
            continue  # The page says so.
        places = read_places(run.artifacts.get(body.places) if body.places else None)
        pid = _PID + event.rank
        name = f"rank {event.rank}: {body.steps} profiled steps"
        yield {"name": "process_name", "ph": "M", "ts": 0, "pid": pid, "tid": 0,
               "args": {"name": name}}  # fmt: skip
        last = max((span.end for span in (*trace.host, *trace.device)), default=0.0)
        begin = max((event.time_ns - origin_ns) / 1e3 - last, 0.0)
        yield from spans_of(trace, places, lines, pid, begin, run.header.root)


def spans_of(
    trace: Trace, places: StepPlaces, lines: dict[str, str], pid: int, begin: float, root: str
) -> Iterator[dict[str, Any]]:
    """Each span of the trace; a kernel and what launched it have one number."""
    calls = Calls(trace, places)
    launches = trace.launches
    tids: dict[tuple[int, int | str], int] = {}
    for span in (*trace.host, *trace.device):
        lane = (span.device, span.lane)
        if lane not in tids:
            tids[lane] = len(tids) + 1
            title = f"GPU {span.device} stream {span.lane}" if span.device >= 0 else "host"
            yield {"name": "thread_name", "ph": "M", "ts": 0, "pid": pid, "tid": tids[lane],
                   "args": {"name": title}}  # fmt: skip
        asked = launches.get(span.correlation, span) if span.device >= 0 else span
        call = calls.at(asked.lane, asked.start) if asked.device < 0 else None
        at = call.place.at if call is not None else None
        where = lines.get(span.name) or (place(at.file, at.line, root) if at is not None else "")
        args = {"place": where, "correlation": span.correlation or None}
        start = int(begin + span.start)
        yield {
            "name": span.name,
            "cat": span.kind,
            "ph": "X",
            "ts": start,
            "dur": int(begin + span.end) - start,
            "pid": pid,
            "tid": tids[lane],
            "args": {key: value for key, value in args.items() if value},
        }
