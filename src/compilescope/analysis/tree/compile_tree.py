"""What was compiled out of what: each function under the one that called it or that it resumes.

A part of a function that goes on after a break hangs under that break, and so do the functions that
Dynamo compiled one by one since it could not trace into them there. What cannot be placed is
listed as such.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.analysis.tree.compilations import Compilation, compilations
from compilescope.analysis.tree.facts import expression_of, own_frame, told_compilation
from compilescope.analysis.tree.frames import (
    CompileTree,
    EagerReason,
    Elsewhere,
    TreeBreak,
    TreeFrame,
)
from compilescope.analysis.tree.merge import merged
from compilescope.analysis.tree.parents import FrameEntry, Parent, Planting
from compilescope.findings.compile_ids import frame_number, process_of
from compilescope.model.bodies import (
    CompileFailed,
    CompileTime,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.model.event import Event
from compilescope.model.fingerprint import fingerprint
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, origin_of

_WHAT: dict[type, str] = {
    CompileFailed: "a failure",
    CompileTime: "a compilation",
    GraphBreak: "a graph break",
    GraphCaptured: "a graph",
    Recompile: "a recompile",
}


def compile_tree(run: Run) -> CompileTree:
    growing = _Growing(run)
    for step in _in_order(run):
        if isinstance(step, Compilation):
            growing.add_compilation(step)
        else:
            growing.add_skip(*step)
    growing.planting.join_rests()
    lost = [_lost(event) for event in run.events if _has_no_id(event)]
    frames, roots = merged(growing.planting.frames)
    return CompileTree(
        frames=tuple(frames), roots=tuple(roots), elsewhere=(*growing.elsewhere, *lost)
    )


def _in_order(run: Run) -> Iterator[Compilation | tuple[Event, FrameSkipped]]:
    """A frame is skipped after it was compiled in vain, and before it calls anything."""
    skips = list(run.of(FrameSkipped))
    skips.reverse()
    for one in compilations(run):
        while skips and skips[-1][0].time_ns < one.first_ns:
            yield skips.pop()
        yield one
    yield from reversed(skips)


def _has_no_id(event: Event) -> bool:
    if event.compile_id is not None or type(event.body) not in _WHAT:
        return False
    return not isinstance(event.body, GraphCaptured) or event.body.stage == "dynamo"


def _lost(event: Event) -> Elsewhere:
    site = event.site
    return Elsewhere(
        what=_WHAT[type(event.body)],
        file=site.file if site else "",
        line=site.line if site else 0,
        rank=event.rank,
    )


class _Growing:
    """The tree while events are read in order of time."""

    def __init__(self, run: Run) -> None:
        self.planting = Planting(run)
        self.elsewhere: list[Elsewhere] = []
        self._root = run.header.root
        self._by_number: dict[tuple[object, ...], int] = {}
        self._by_event: dict[str, int] = {}
        self._broken_before: dict[int, str] = {}
        """By frame: the expression whose value the rest of a function begins with."""
        self._told: set[tuple[int, object, str]] = set()
        """Breaks and reasons to run eagerly that a frame has already."""

    def add_compilation(self, one: Compilation) -> None:
        process, epoch, compile_id = one.key
        number = self._by_number.get((process, epoch, frame_number(compile_id)))
        if number is None:
            if one.code is None:
                self._note_unplaced(one)
                return
            call = FrameEntry(epoch=(process, epoch), thread=one.thread, callers=one.callers or ())
            number = self._plant(one.code, call, one.rank, self._around(one))
            self._by_number[process, epoch, frame_number(compile_id)] = number
        for event_id in one.events:
            self._by_event[event_id] = number
        frame = self.planting.frames[number]
        broken = self._broken_before.get(number, "")
        frame.compilations.append(told_compilation(one, frame.called_from, broken))
        for event, body in one.breaks:
            self._add_break(number, one, event, body)

    def add_skip(self, event: Event, body: FrameSkipped) -> None:
        if body.cause == "harmless" and origin_of(body.frame.file) not in ("user", "library"):
            return  # Dynamo passes over such frames all the time.
        epoch = (process_of(event), event.epoch)
        number = self._by_event.get(body.because or "")
        if number is None:
            number = self.planting.same_code(epoch, body.frame)
        if number is None:
            call = FrameEntry(epoch=epoch, thread=event.thread, callers=event.stack)
            number = self._plant(body.frame, call, event.rank, None)
        reason = EagerReason(cause=body.cause, reason=body.reason, gb_id=body.gb_id)
        self._give_reason(number, reason)

    def _around(self, one: Compilation) -> int | None:
        """Where its callers don't tell: what was compiled meanwhile, or its region."""
        process, epoch, _ = one.key
        if one.within is not None:
            return self._by_number.get((process, epoch, frame_number(one.within[2])))
        if one.region is None or one.region == one.code:
            return None
        return self.planting.same_code((process, epoch), one.region)

    def _plant(self, code: CodeRef, call: FrameEntry, rank: int, around: int | None) -> int:
        parent = self.planting.parent(code, call)
        if parent is None and around is not None:
            parent = Parent(frame=around)
        frames = self.planting.frames
        if parent is not None and code.resumed and code.line == code.resumed_at:
            above = frames[parent.frame].code
            if (above.file, above.function) == (code.file, code.function):
                code = msgspec.structs.replace(code, line=above.line)
        frame = TreeFrame(
            code=code,
            called_from=call.callers[-1] if call.callers and not code.resumed else None,
            through=parent.through if parent is not None else (),
            parent=parent.frame if parent is not None else None,
            epoch=call.epoch[1],
            ranks=(rank,),
        )
        number = self.planting.add(frame, call)
        if parent is not None:
            above_frame = frames[parent.frame]
            if parent.at_break is None:
                above_frame.frames.append(number)
            else:
                broken = above_frame.breaks[parent.at_break]
                broken.frames.append(number)
                if code.resumed:
                    self._broken_before[number] = broken.expression
        return number

    def _add_break(self, number: int, one: Compilation, event: Event, body: GraphBreak) -> None:
        frame = self.planting.frames[number]
        site = event.site
        name = fingerprint(body.gb_type, site, self._root)
        own = own_frame(frame.code, one.callers, event.stack)
        line = own.line if own is not None else 0
        if (number, line, name) not in self._told:
            self._told.add((number, line, name))
            broken = TreeBreak(
                line=line,
                gb_id=body.gb_id,
                gb_type=body.gb_type,
                outcome=body.outcome,
                fingerprint=name,
                file=site.file if site else frame.code.file,
                site_line=site.line if site else line,
                function=site.function if site else frame.code.function,
                expression=expression_of(own),
            )
            self.planting.add_break(number, broken)
        if body.outcome in ("frame-eager", "rest-eager"):
            reason = EagerReason(cause="graph-break", reason=body.gb_type, gb_id=body.gb_id)
            self._give_reason(number, reason)

    def _give_reason(self, number: int, reason: EagerReason) -> None:
        """Once: torch reports a break, and then the frame that it skipped because of it."""
        told = (number, reason.cause, reason.reason)
        if told not in self._told:
            self._told.add(told)
            self.planting.frames[number].eager.append(reason)

    def _note_unplaced(self, one: Compilation) -> None:
        what = "a compilation of an unknown function"
        self.elsewhere.append(Elsewhere(what=what, compile_id=one.compile_id, rank=one.rank))
