"""The trace of a few steps as a run keeps it: names once, times from the first step on.

What Kineto writes is some ten times larger; who wants all of it asks torch's profiler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from compilescope.errors import ToolError
from compilescope.profiles.trace import Trace, TraceSpan, read_trace

_KEPT_DETAILS = ("bytes", "grid", "block", "registers per thread", "est. achieved occupancy %")


_Row = tuple[int, int, int, int, float, float, int]


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
    except (msgspec.DecodeError, IndexError) as error:
        raise ToolError(f"The profile of this run cannot be read ({error}).") from None
    return Trace.of(spans, stored.devices)
