"""The trace that torch's profiler writes (Kineto, Chrome's format), as far as a step needs it,
and as a run keeps it.

Times are in microseconds, as Kineto has them. What ran on a device has a `stream`, what the host
did a thread; a launch and what it started have one correlation number.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.errors import ToolError

_KEPT_DETAILS = ("bytes", "grid", "block", "registers per thread", "est. achieved occupancy %")


_Row = tuple[int, int, int, int, float, float, int]
Interval = tuple[float, float]
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
_HOST = ("cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "python_function")
STEP = "compilescope.step"
"""What the recorder calls a step in the trace; its number follows."""
USUAL_STEPS = 5
"""Chosen: enough for a mean, and a trace of some megabytes at most."""
_STEP = re.compile(rf"{re.escape(STEP)}#(\d+)$")


class TraceSpan(msgspec.Struct, frozen=True):
    """Something with a beginning and an end."""

    name: str
    kind: str
    """Kineto's category: `cpu_op`, `kernel`, ..."""
    start: float
    end: float
    lane: int | str
    """The thread of the host, or the stream of the device."""
    device: int = -1
    """-1: the host."""
    correlation: int = 0
    details: dict[str, Any] = {}

    @property
    def duration(self) -> float:
        return self.end - self.start


class Trace(msgspec.Struct, frozen=True):
    """One process's record."""

    host: list[TraceSpan]
    """By beginning; of two that begin together the longer one first, which holds the other."""
    device: list[TraceSpan]
    """By beginning."""
    steps: list[TraceSpan]
    """The marks of whole steps, one after the other."""
    devices: list[dict[str, Any]]
    """What Kineto says of the devices; empty without any."""

    @classmethod
    def of(cls, spans: Iterable[TraceSpan], devices: list[dict[str, Any]]) -> Trace:
        found = list(spans)
        host = sorted((s for s in found if s.device < 0), key=lambda s: (s.start, -s.end))
        device = sorted((s for s in found if s.device >= 0), key=lambda s: s.start)
        steps = [s for s in host if s.kind == "user_annotation" and _STEP.match(s.name)]
        return cls(host, device, steps, devices)

    @property
    def launches(self) -> dict[int, TraceSpan]:
        """The calls of the driver by their correlation."""
        return {s.correlation: s for s in self.host if s.correlation and _is_driver(s)}

    @property
    def asked(self) -> list[TraceSpan]:
        """The device's work that was asked for in the steps, whenever it ran: the host may be ahead
        of the device by more than all of them."""
        start, end = self.steps[0].start, self.steps[-1].end
        launches = self.launches
        return [s for s in self.device if start <= _asked_at(s, launches, start) < end]

    @property
    def window(self) -> Interval:
        """All steps, one after the other: as the device has them, from the end of what was asked
        for before them to the end of what they asked for."""
        start, end = self.steps[0].start, self.steps[-1].end
        launches = self.launches
        before = [s.end for s in self.device if _asked_at(s, launches, start) < start]
        own = [s.end for s in self.device if _asked_at(s, launches, start) < end]
        return max([start, *before]), max([end, *own])


class _TraceEvent(msgspec.Struct):
    ph: str = ""
    cat: str = ""
    name: str = ""
    tid: int | str = 0
    ts: float = 0.0
    dur: float = 0.0
    args: dict[str, Any] = {}


class _File(msgspec.Struct):
    traceEvents: list[_TraceEvent] = []
    deviceProperties: list[dict[str, Any]] = []


def read_trace(path: Path) -> Trace:
    """A trace, gzipped or not."""
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        file = msgspec.json.decode(text, type=_File)
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise ToolError(f"{path.name} is no trace of torch's profiler ({error}).") from None
    return Trace.of(_spans(file.traceEvents), file.deviceProperties)


def _spans(events: Iterable[_TraceEvent]) -> Iterator[TraceSpan]:
    for event in events:
        if event.ph != "X" or event.cat not in (*DEVICE_WORK, *_HOST):
            continue
        on_device = event.cat in DEVICE_WORK
        yield TraceSpan(
            name=event.name,
            kind=event.cat,
            start=event.ts,
            end=event.ts + event.dur,
            lane=event.args.get("stream", event.tid) if on_device else event.tid,
            device=int(event.args.get("device", 0)) if on_device else -1,
            correlation=int(event.args.get("correlation", 0)),
            details=event.args,
        )


def _asked_at(span: TraceSpan, launches: dict[int, TraceSpan], start: float) -> float:
    """When the host asked for it. What has a launch that is not in the record was asked for before
    it begins; what has none is taken by its own time."""
    launch = launches.get(span.correlation)
    if launch is not None:
        return launch.start
    return min(span.start, start - 1) if span.correlation else span.start


def _is_driver(span: TraceSpan) -> bool:
    return span.kind in ("cuda_runtime", "cuda_driver")


# Sets of times: sorted, disjoint pairs of a beginning and an end.


def union(pairs: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for start, end in sorted(pair for pair in pairs if pair[1] > pair[0]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def length(pairs: Iterable[Interval]) -> float:
    """Of disjoint ones."""
    return sum(end - start for start, end in pairs)


def within(pairs: Iterable[Interval], window: Interval) -> list[Interval]:
    """What of them lies in the window."""
    cut = ((max(start, window[0]), min(end, window[1])) for start, end in pairs)
    return [(start, end) for start, end in cut if end > start]


def without(pairs: Sequence[Interval], taken: Sequence[Interval]) -> list[Interval]:
    """What of the ones no other has; both sorted and disjoint."""
    left: list[Interval] = []
    first = 0
    for start, end in pairs:
        at = start
        while first < len(taken) and taken[first][1] <= start:
            first += 1
        index = first
        while index < len(taken) and taken[index][0] < end:
            if taken[index][0] > at:
                left.append((at, taken[index][0]))
            at = max(at, taken[index][1])
            index += 1
        if at < end:
            left.append((at, end))
    return left


# The trace of a few steps as a run keeps it: names once, times from the first step on.
#
# What Kineto writes is some ten times larger; who wants all of it asks torch's profiler.


class _Stored(msgspec.Struct, array_like=True):
    """Spans as rows of numbers: name, kind and lane are indices."""

    names: list[str]
    kinds: list[str]
    lanes: list[int | str]
    rows: list[_Row]
    """Name, kind, lane, device, start, duration, correlation."""
    details: dict[int, dict[str, Any]]
    """By row."""
    devices: list[dict[str, Any]]
    steps: int


def compact(file: Path, first: int) -> str:
    """A trace of torch's profiler; the steps before `first` are left out."""
    trace = read_trace(file)
    steps = trace.steps[first:]
    if not steps:
        return msgspec.json.encode(_Stored([], [], [], [], {}, [], 0)).decode()
    start, end = steps[0].start, steps[-1].end
    # The device may be behind.
    until = Trace(trace.host, trace.device, steps, trace.devices).window[1]
    wanted = [span for span in trace.host if start <= span.end and span.start <= end]
    wanted += [span for span in trace.device if start <= span.end and span.start <= until]
    names: dict[str, int] = {}
    kinds: dict[str, int] = {}
    lanes: dict[int | str, int] = {}
    rows: list[_Row] = []
    details: dict[int, dict[str, Any]] = {}
    for span in wanted:
        row = (
            names.setdefault(span.name, len(names)),
            kinds.setdefault(span.kind, len(kinds)),
            lanes.setdefault(span.lane, len(lanes)),
            span.device,
            round(span.start - start, 3),
            round(span.duration, 3),
            span.correlation,
        )
        kept = {key: span.details[key] for key in _KEPT_DETAILS if key in span.details}
        if kept:
            details[len(rows)] = kept
        rows.append(row)
    stored = _Stored(
        list(names), list(kinds), list(lanes), rows, details, trace.devices, len(steps)
    )
    return msgspec.json.encode(stored).decode()


def read_stored(text: str) -> Trace:
    """ToolError where it is not what `compact` wrote."""
    try:
        stored = msgspec.json.decode(text, type=_Stored)
        spans = [
            TraceSpan(
                name=stored.names[name],
                kind=stored.kinds[kind],
                lane=stored.lanes[lane],
                device=device,
                start=start,
                end=start + duration,
                correlation=correlation,
                details=stored.details.get(index, {}),
            )
            for index, (name, kind, lane, device, start, duration, correlation) in enumerate(
                stored.rows
            )
        ]
    except (msgspec.DecodeError, UnicodeEncodeError, IndexError) as error:
        raise ToolError(f"The profile of this run cannot be read ({error}).") from None
    return Trace.of(spans, stored.devices)
