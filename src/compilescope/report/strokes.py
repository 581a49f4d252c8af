"""From the bars of a timeline to those that are drawn: as many as a reader can see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compilescope.model.stack import CodeRef
from compilescope.report import blocks
from compilescope.report.places import first_line, place
from compilescope.report.targets import Targets
from compilescope.rules.timeline.bars import Bar
from compilescope.rules.timeline.lanes import Lane, Timeline
from compilescope.rules.timeline.marks import Mark

_MOST_COMPILATIONS = 800
_MOST_PHASES = 800
_MOST_MARKS = 400
_MOST_WORDS = 300
_BACKEND = "backend_compile"
_LEAST_WANTED = ("cache", "cudagraphs")


@dataclass(frozen=True)
class Drawing:
    """What all lanes of one timeline share."""

    start_ns: int
    chosen: frozenset[int]
    """The bars there is room for, by their place in memory."""
    most_marks: int
    """In one lane."""
    root: str
    targets: Targets


_Path = list[tuple[Bar, int, bool]]
"""The bars around a moment, outermost first: each with its depth as drawn, and whether it is."""


def drawing_of(seen: Timeline, root: str, targets: Targets) -> Drawing:
    """How much detail there is room for: the longest compilations, and the longest phases."""
    bars = [bar for lane in seen.lanes for bar in lane.bars]
    whole = [bar for bar in bars if bar.kind == "compilation"]
    parts = [bar for bar in bars if bar.kind != "compilation"]
    chosen = [*_longest(whole, _MOST_COMPILATIONS), *_longest(parts, _MOST_PHASES)]
    return Drawing(
        start_ns=seen.start_ns,
        chosen=frozenset(map(id, chosen)),
        most_marks=max(_MOST_MARKS // max(len(seen.lanes), 1), 20),
        root=root,
        targets=targets,
    )


def _longest(bars: list[Bar], most: int) -> list[Bar]:
    return bars if len(bars) <= most else sorted(bars, key=lambda bar: -bar.duration_ns)[:most]


def drawn_lane(lane: Lane, drawing: Drawing) -> tuple[tuple[blocks.Bar, ...], int]:
    """The bars and moments of a lane in order of time, and how many were left out.

    A bar that is left out takes along all that lies in it.
    """
    drawn: list[blocks.Bar] = []
    marks = _chosen(lane.marks, drawing.most_marks)
    hidden = len(lane.marks) - len(marks)
    waiting = list(reversed(marks))
    path: _Path = []
    for bar in lane.bars:
        while waiting and waiting[-1].time_ns < bar.start_ns:
            drawn.append(_moment(waiting.pop(), path, drawing))
        while path and path[-1][0].depth >= bar.depth:
            path.pop()
        depth = path[-1][1] + 1 if path else 0
        if path and _same_time(path[-1][0], bar):
            # torch's own name for the whole of a compilation adds nothing to look at.
            path.append((bar, depth - 1, path[-1][2]))
            continue
        shown = id(bar) in drawing.chosen and (not path or path[-1][2])
        path.append((bar, depth, shown))
        if shown:
            drawn.append(_stroke(bar, depth, _kind(bar, path, drawing.targets), drawing))
        else:
            hidden += 1
    drawn += [_moment(mark, path, drawing) for mark in reversed(waiting)]
    return tuple(drawn), hidden


def _same_time(outer: Bar, bar: Bar) -> bool:
    return (outer.start_ns, outer.end_ns) == (bar.start_ns, bar.end_ns) and bar.kind == "phase"


def _chosen(marks: tuple[Mark, ...], most: int) -> Sequence[Mark]:
    """All, or the most telling and earliest ones."""
    if len(marks) <= most:
        return marks
    ranked = sorted(marks, key=lambda mark: mark.kind in _LEAST_WANTED)
    return sorted(ranked[:most], key=lambda mark: mark.time_ns)


def _stroke(bar: Bar, depth: int, kind: str, drawing: Drawing) -> blocks.Bar:
    return blocks.Bar(
        label=bar_label(bar),
        start_ns=bar.start_ns - drawing.start_ns,
        duration_ns=bar.duration_ns,
        depth=depth,
        kind=kind,
        detail=_short(" · ".join(filter(None, _details(bar, drawing.root)))),
        target=drawing.targets.of_compilation(bar.key) if bar.kind == "compilation" else "",
    )


def bar_label(bar: Bar) -> str:
    """A compilation is named by its id, its function and what is compiled of it."""
    if bar.kind != "compilation":
        return bar.name
    label = f"{bar.compile_id or '?'} {bar.name}"
    if bar.code is not None and bar.code.resumed:
        label += f" (from line {bar.code.resumed_at})"
    return label + (", backward" if bar.direction == "backward" else "")


def _kind(bar: Bar, path: _Path, targets: Targets) -> str:
    """What the colour tells: Dynamo's work, or the backend's, which backward graphs are all of."""
    if bar.kind == "compilation":
        if bar.ok is False:
            return "failed"
        return "recompile" if bar.key in targets.recompiled else "frame"
    if bar.kind == "phase" and bar.direction == "backward":
        return "backend"
    in_backend = any(outer.name == _BACKEND for outer, _, _ in path)
    return "backend" if in_backend else bar.kind


def _details(bar: Bar, root: str) -> list[str]:
    texts = [bar.detail]
    if bar.kind == "compilation":
        texts += [_where(bar.code, root), "not compiled" if bar.ok is False else ""]
    if bar.reason:
        texts.append(f"traced again: {bar.reason}")
    if not bar.ended:
        texts.append("end not recorded")
    return texts


def _where(code: CodeRef | None, root: str) -> str:
    return "" if code is None else place(code.file, code.line, root)


def _moment(mark: Mark, path: _Path, drawing: Drawing) -> blocks.Bar:
    depth = 0
    for bar, inner, shown in path:
        if shown and bar.start_ns <= mark.time_ns <= bar.end_ns:
            depth = inner + 1
    where = place(mark.file, mark.line, drawing.root) if mark.file else ""
    return blocks.Bar(
        label=mark.name,
        start_ns=mark.time_ns - drawing.start_ns,
        duration_ns=0,
        depth=depth,
        kind=mark.kind if mark.kind in ("break", "cache") else "instant",
        detail=_short(" · ".join(filter(None, (where, first_line(mark.detail))))),
        target=drawing.targets.events.get(mark.event, ""),
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_WORDS else text[:_MOST_WORDS] + "…"
