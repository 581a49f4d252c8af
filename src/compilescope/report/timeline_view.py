"""From the bars of a timeline to those that are drawn: as many as a reader can see."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compilescope.knowledge.analysis.timeline.bars import Mark, TimelineBar
from compilescope.knowledge.analysis.timeline.lanes import RunTimeline, TimelineLane
from compilescope.record.stack import CodeRef
from compilescope.report import blocks
from compilescope.report.links import Targets
from compilescope.report.places import first_line, place

# Chosen: the longest; more bars can't be told apart on a screen and make the page slow.
_MOST_COMPILATIONS = 800
_MOST_PHASES = 800
_MOST_MARKS = 400
_MOST_WORDS = 300
_BACKEND = "backend_compile"
_LEAST_WANTED = ("cache", "cudagraphs")


class Drawing(msgspec.Struct, frozen=True):
    """What all lanes of one timeline share."""

    start_ns: int
    chosen: frozenset[int]
    """The bars there is room for, by their place in memory."""
    most_marks: int
    """In one lane."""
    root: str
    targets: Targets


_Around = tuple[TimelineBar, int, bool, bool]
"""A bar around a moment; its depth as drawn; is it drawn; is it a backend's work, or within such.
A plain tuple: there is one for each bar of a run."""
_Path = list[_Around]
"""Outermost first."""


def drawing_of(seen: RunTimeline, root: str, targets: Targets) -> Drawing:
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


def _longest(bars: list[TimelineBar], most: int) -> list[TimelineBar]:
    return bars if len(bars) <= most else sorted(bars, key=lambda bar: -bar.duration_ns)[:most]


def drawn_lane(lane: TimelineLane, drawing: Drawing) -> tuple[tuple[blocks.Bar, ...], int]:
    """The bars and moments of a lane in order of time, and how many were left out.

    A bar that is left out takes along all that lies in it.
    """
    drawn: list[blocks.Bar] = []
    marks = _chosen(lane.marks, drawing.most_marks)
    hidden = len(lane.marks) - len(marks)
    waiting = list(reversed(marks))
    path: _Path = []
    # Those of them that are drawn: there are few, however deep a run is nested.
    around: _Path = []
    for bar in lane.bars:
        while waiting and waiting[-1].time_ns < bar.start_ns:
            drawn.append(_moment(waiting.pop(), around, drawing))
        while path and path[-1][0].depth >= bar.depth:
            left = path.pop()
            if around and around[-1] is left:
                around.pop()
        depth, in_backend, has_room = 0, bar.name == _BACKEND, True
        if path:
            outer, depth, has_room, outer_in_backend = path[-1]
            in_backend = in_backend or outer_in_backend
            if _same_time(outer, bar):
                # torch's own name for the whole of a compilation adds nothing to look at.
                path.append((bar, depth, has_room, in_backend))
                continue
            depth += 1
        shown = has_room and id(bar) in drawing.chosen
        path.append((bar, depth, shown, in_backend))
        if shown:
            around.append(path[-1])
            drawn.append(_stroke(bar, depth, _kind(bar, in_backend, drawing.targets), drawing))
        else:
            hidden += 1
    drawn += [_moment(mark, around, drawing) for mark in reversed(waiting)]
    return tuple(drawn), hidden


def _same_time(outer: TimelineBar, bar: TimelineBar) -> bool:
    return outer.start_ns == bar.start_ns and outer.end_ns == bar.end_ns and bar.kind == "phase"


def _chosen(marks: tuple[Mark, ...], most: int) -> Sequence[Mark]:
    """All, or the most telling and earliest ones."""
    if len(marks) <= most:
        return marks
    ranked = sorted(marks, key=lambda mark: mark.kind in _LEAST_WANTED)
    return sorted(ranked[:most], key=lambda mark: mark.time_ns)


def _stroke(bar: TimelineBar, depth: int, kind: str, drawing: Drawing) -> blocks.Bar:
    return blocks.Bar(
        label=bar_label(bar),
        start_ns=bar.start_ns - drawing.start_ns,
        duration_ns=bar.duration_ns,
        depth=depth,
        kind=kind,
        detail=_short(" · ".join(filter(None, _details(bar, drawing.root)))),
        target=drawing.targets.of_compilation(bar.key) if bar.kind == "compilation" else "",
    )


def bar_label(bar: TimelineBar) -> str:
    """A compilation is named by its id, its function and what is compiled of it."""
    if bar.kind != "compilation":
        return bar.name
    label = f"{bar.compile_id or '?'} {bar.name}"
    if bar.code is not None and bar.code.resumed:
        label += f" (from line {bar.code.resumed_at})"
    return label + (", backward" if bar.direction == "backward" else "")


def _kind(bar: TimelineBar, in_backend: bool, targets: Targets) -> str:
    """What the colour tells: Dynamo's work, or the backend's, which backward graphs are all of."""
    if bar.kind == "compilation":
        if bar.ok is False:
            return "failed"
        return "recompile" if bar.key in targets.recompiled else "frame"
    if bar.kind == "phase" and bar.direction == "backward":
        return "backend"
    return "backend" if in_backend else bar.kind


def _details(bar: TimelineBar, root: str) -> list[str]:
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


def _moment(mark: Mark, around: _Path, drawing: Drawing) -> blocks.Bar:
    depth = 0
    for bar, outer_depth, *_ in reversed(around):
        if bar.start_ns <= mark.time_ns <= bar.end_ns:
            depth = outer_depth + 1
            break
    site = mark.event.site
    where = place(site.file, site.line, drawing.root) if site else ""
    return blocks.Bar(
        label=mark.name,
        start_ns=mark.time_ns - drawing.start_ns,
        duration_ns=0,
        depth=depth,
        kind=mark.kind if mark.kind in ("break", "cache") else "instant",
        detail=_short(" · ".join(filter(None, (where, first_line(mark.detail))))),
        target=drawing.targets.of_event(mark.event.id),
    )


def _short(text: str) -> str:
    return text if len(text) <= _MOST_WORDS else text[:_MOST_WORDS] + "…"
