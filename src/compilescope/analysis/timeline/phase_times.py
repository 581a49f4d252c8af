"""Where compile time went: by phase and by function."""

from __future__ import annotations

from collections import Counter

import msgspec

from compilescope.analysis.timeline.bars import TimelineBar
from compilescope.analysis.timeline.lanes import RunTimeline
from compilescope.model.stack import CodeRef

OUTSIDE = "outside any phase"
UNKNOWN = "phases unknown"
ATTEMPT = "attempt"


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
        inside: Counter[str] = Counter()
        for number, bar in enumerate(lane.bars):
            while len(path) > bar.depth:
                inside[path.pop()] -= 1
            leaf = number + 1 == len(lane.bars) or lane.bars[number + 1].depth <= bar.depth
            name = _name(bar, leaf)
            entry = found.get(name)
            if entry is None:
                entry = found[name] = PhaseTime(name=name)
            entry.self_ns += bar.self_ns
            if bar.kind != "compilation" or leaf:
                entry.count += 1
                entry.total_ns += 0 if inside[name] else bar.duration_ns
            path.append(name)
            inside[name] += 1
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
