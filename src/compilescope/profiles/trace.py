"""The trace that torch's profiler writes (Kineto, Chrome's format), as far as a step needs it.

Times are in microseconds, as Kineto has them. What ran on a device has a `stream`, what the host
did a thread; a launch and what it started have one correlation number.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from compilescope.errors import ToolError
from compilescope.profiles.intervals import Interval

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
