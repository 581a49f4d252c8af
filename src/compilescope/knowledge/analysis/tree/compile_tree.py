"""What was compiled out of what: each function under the one that called it or that it resumes.

A part of a function that goes on after a break hangs under that break, and so do the functions that
Dynamo compiled one by one since it could not trace into them there. What cannot be placed is
listed as such. Entry points that look the same all the way down (on several ranks, or
after `torch._dynamo.reset`) are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Literal, TypeVar

import msgspec

from compilescope.knowledge.analysis.tree.frames import (
    Compilation,
    CompileTree,
    EagerReason,
    TreeBreak,
    TreeCompilation,
    TreeFrame,
    UnplacedItem,
    added,
    compilations,
)
from compilescope.knowledge.analysis.tree.parents import Epoch, FrameEntry, Parent, PlacedFrames
from compilescope.knowledge.findings.compile_ids import process_of
from compilescope.record.bodies import (
    CompileFailed,
    CompileTime,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.fingerprint import fingerprint
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of
from compilescope.record.storms import frame_number

T = TypeVar("T")
_WHAT: dict[type, str] = {
    CompileFailed: "a failure",
    CompileTime: "a compilation",
    GraphBreak: "a graph break",
    GraphCaptured: "a graph",
    Recompile: "a recompile",
}


def compile_tree(run: Run) -> CompileTree:
    growing = _TreeBuilder(run)
    for step in _in_order(run):
        if isinstance(step, Compilation):
            growing.add_compilation(step)
        else:
            growing.add_skip(*step)
    growing.placed.join_rests()
    lost = [_lost(event) for event in run.events if _has_no_id(event)]
    known, elsewhere = growing.placed.frames, (*growing.elsewhere, *lost)
    del growing  # By what frames were found while the tree grew: as large as the tree.
    frames, roots = _merged(known)
    return CompileTree(frames=tuple(frames), roots=tuple(roots), elsewhere=elsewhere)


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


def _lost(event: Event) -> UnplacedItem:
    site = event.site
    return UnplacedItem(
        what=_WHAT[type(event.body)],
        file=site.file if site else "",
        line=site.line if site else 0,
        rank=event.rank,
    )


class _TreeBuilder:
    """The tree while events are read in order of time."""

    def __init__(self, run: Run) -> None:
        self.placed = PlacedFrames(run)
        self.elsewhere: list[UnplacedItem] = []
        self._root = run.header.root
        self._by_number: dict[Epoch, dict[str, int]] = {}
        """The frames of each process and epoch, by Dynamo's own numbers."""
        self._by_event: dict[str, int] = {}
        """The frames of the events that made another run eagerly."""
        self._broken_before: dict[int, str] = {}
        """By frame: the expression whose value the rest of a function begins with."""
        self._told: set[tuple[int, object]] = set()
        """Breaks and reasons to run eagerly of frames that have several."""
        self._reasons: dict[tuple[str, str, str | None], EagerReason] = {}
        """A few words, said of a hundred thousand frames."""
        self._ranks: dict[int, tuple[int, ...]] = {}

    def add_compilation(self, one: Compilation) -> None:
        process, epoch, compile_id = one.key
        numbers = self._by_number.setdefault((process, epoch), {})
        name = frame_number(compile_id)
        number = numbers.get(name)
        if number is None:
            if one.code is None:
                self._note_unplaced(one)
                return
            call = FrameEntry(epoch=(process, epoch), thread=one.thread, callers=one.callers or ())
            number = self._plant(one.code, call, one.rank, self._around(one))
            numbers[name] = number
        for event_id in one.made_eager:
            self._by_event[event_id] = number
        frame = self.placed.frames[number]
        broken = self._broken_before.get(number, "")
        told = told_compilation(one, frame.called_from, broken)
        frame.compilations = added(frame.compilations, told)
        for event, body in one.breaks:
            self._add_break(number, one, event, body)

    def add_skip(self, event: Event, body: FrameSkipped) -> None:
        if body.cause == "harmless" and origin_of(body.frame.file) not in ("user", "library"):
            return  # Dynamo passes over such frames all the time.
        epoch = (process_of(event), event.epoch)
        number = self._by_event.get(body.because or "")
        if number is None:
            number = self.placed.same_code(epoch, body.frame)
        if number is None:
            call = FrameEntry(epoch=epoch, thread=event.thread, callers=event.stack)
            number = self._plant(body.frame, call, event.rank, None)
        self._give_reason(number, body.cause, body.reason, body.gb_id)

    def _around(self, one: Compilation) -> int | None:
        """Where its callers don't tell: what was compiled meanwhile, or its region."""
        process, epoch, _ = one.key
        if one.within is not None:
            return self._by_number.get((process, epoch), {}).get(frame_number(one.within[2]))
        if one.region is None or one.region == one.code:
            return None
        return self.placed.same_code((process, epoch), one.region)

    def _plant(self, code: CodeRef, call: FrameEntry, rank: int, around: int | None) -> int:
        parent = self.placed.parent(code, call)
        if parent is None and around is not None:
            parent = Parent(frame=around)
        frames = self.placed.frames
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
            ranks=self._ranks.setdefault(rank, (rank,)),
        )
        number = self.placed.add(frame, call)
        if parent is not None:
            above_frame = frames[parent.frame]
            if parent.at_break is None:
                above_frame.frames = added(above_frame.frames, number)
            else:
                broken = above_frame.breaks[parent.at_break]
                broken.frames = added(broken.frames, number)
                if code.resumed:
                    self._broken_before[number] = broken.expression
        return number

    def _add_break(self, number: int, one: Compilation, event: Event, body: GraphBreak) -> None:
        frame = self.placed.frames[number]
        site = event.site
        name = fingerprint(body.gb_type, site, self._root)
        own = own_frame(frame.code, one.callers, event.stack)
        line = own.line if own is not None else 0
        if self._is_new(number, frame.breaks, _break_name, (line, name)):
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
            self.placed.add_break(number, broken)
        if body.outcome in ("frame-eager", "rest-eager"):
            self._give_reason(number, "graph-break", body.gb_type, body.gb_id)

    def _give_reason(self, number: int, cause: str, reason: str, gb_id: str | None) -> None:
        """Once: torch reports a break, and then the frame that it skipped because of it."""
        frame = self.placed.frames[number]
        if not self._is_new(number, frame.eager, _reason_name, (cause, reason)):
            return
        found = self._reasons.get((cause, reason, gb_id))
        if found is None:
            found = EagerReason(cause=cause, reason=reason, gb_id=gb_id)
            self._reasons[cause, reason, gb_id] = found
        frame.eager = added(frame.eager, found)

    def _is_new(
        self, number: int, known: Sequence[T], name_of: Callable[[T], object], name: object
    ) -> bool:
        """Has the frame none of that name? Most have one at most: their names are not kept."""
        if not known:
            return True
        if len(known) == 1:
            self._told.add((number, name_of(known[0])))
        is_new = (number, name) not in self._told
        self._told.add((number, name))
        return is_new

    def _note_unplaced(self, one: Compilation) -> None:
        what = "a compilation of an unknown function"
        self.elsewhere.append(UnplacedItem(what=what, compile_id=one.compile_id, rank=one.rank))


_break_name = attrgetter("line", "fingerprint")
_reason_name = attrgetter("cause", "reason")


def own_frame(
    code: CodeRef, callers: tuple[Frame, ...] | None, stack: tuple[Frame, ...]
) -> Frame | None:
    """The compiled function itself in the stack of a break within it."""
    own = [frame for frame in stack if frame.file == code.file and frame.function == code.function]
    if callers is not None:
        # The rest of a function shows as one frame with the part that called it.
        depth = len(callers) - (1 if code.resumed else 0)
        if 0 <= depth < len(stack) and stack[depth] in own:
            return stack[depth]
    return own[0] if own else (stack[-1] if stack else None)


def expression_of(frame: Frame | None) -> str:
    if frame is None or frame.column is None or frame.end_column is None:
        return ""
    return frame.source[frame.column : frame.end_column]


def told_compilation(one: Compilation, first_call: Frame | None, broken: str) -> TreeCompilation:
    """`broken` is the expression at the break before it, `first_call` where the frame was called
    first."""
    went: Literal["", "compiled", "failed"] = ""
    ok: bool | None = None
    for told in one.times:
        if told.phase == "forward":
            ok = told.ok
        else:
            went = "compiled" if told.ok and went != "failed" else "failed"
    return TreeCompilation(
        key=one.key,
        ops=tuple([graph.ops for graph in one.graphs]),
        ended_by_break=one.graphs[-1].ended_by_break if one.graphs else None,
        backend=one.graphs[-1].backend if one.graphs else None,
        ok=ok,
        recompile=one.recompile,
        broken=broken,
        called_from=_other_call(first_call, one.callers),
        backward=went,
        failures=tuple([f"{failed.phase} failed: {failed.error}" for failed in one.failures]),
        duration_ns=sum([told.duration_ns for told in one.times]),
        within_another=one.within is not None,
    )


def _other_call(first: Frame | None, callers: tuple[Frame, ...] | None) -> Frame | None:
    if first is None or not callers:
        return None
    call = callers[-1]
    same = (call.file, call.line, call.function) == (first.file, first.line, first.function)
    return None if same else call


_look = attrgetter(
    *("ops", "ended_by_break", "backend", "ok", "called_from", "again", "recompiled", "refused"),
    *("backward", "failures", "within_another"),
)
"""All but what differs between any two runs: ids and times."""


def _merged(frames: list[TreeFrame]) -> tuple[list[TreeFrame], list[int]]:
    """The frames that are left, numbered anew, and the entry points among them."""
    roots = [number for number, frame in enumerate(frames) if frame.parent is None]
    kinds = _kinds(frames, _similar(frames, roots))
    alike: dict[tuple[int, int], list[int]] = {}
    for number in roots:
        # Of one that is similar to none it is not known how it looks.
        look = (-1, number) if number not in kinds else (kinds[number], 0)
        alike.setdefault(look, []).append(number)
    if len(alike) == len(roots):
        return frames, roots
    for same in alike.values():
        if len(same) > 1:
            _join(frames, same)
    return _renumbered(frames, [same[0] for same in alike.values()])


def _similar(frames: list[TreeFrame], roots: list[int]) -> set[int]:
    """Frames of trees of which several begin at the same code: only those need to be compared."""
    beginnings: dict[object, list[int]] = {}
    for number in roots:
        frame = frames[number]
        look = (frame.code, frame.called_from, len(frame.compilations), len(frame.breaks))
        beginnings.setdefault(look, []).append(number)
    found = {number for same in beginnings.values() if len(same) > 1 for number in same}
    if found:
        for number, frame in enumerate(frames):  # Children follow their parents.
            if frame.parent in found:
                found.add(number)
    return found


def _kinds(frames: list[TreeFrame], compared: set[int]) -> dict[int, int]:
    """For each of these frames a number that it shares with those that look the same all the way
    down."""
    numbers: dict[object, int] = {}
    looks: dict[object, int] = {}
    kinds: dict[int, int] = {}
    # Parents come before children, so from the end on all below a frame is known.
    for number in sorted(compared, reverse=True):
        frame = frames[number]
        look = (
            frame.code,
            frame.called_from,
            frame.through,
            tuple([looks.setdefault(_look(one), len(looks)) for one in frame.compilations]),
            tuple(frame.eager),
            tuple([_break_look(broken, kinds) for broken in frame.breaks]),
            tuple([kinds[child] for child in frame.frames]),
        )
        kinds[number] = numbers.setdefault(look, len(numbers))
    return kinds


def _break_look(broken: TreeBreak, kinds: dict[int, int]) -> tuple[object, ...]:
    below = tuple(kinds[child] for child in broken.frames)
    return broken.line, broken.fingerprint, broken.site_line, broken.outcome, below


def _join(frames: list[TreeFrame], roots: list[int]) -> None:
    """Adds to the first of trees that look the same what the others have of their own."""
    waiting = [tuple(roots)]
    while waiting:
        every = [frames[number] for number in waiting.pop()]
        one = every[0]
        one.ranks = tuple(sorted({rank for each in every for rank in each.ranks}))
        one.times = sum(each.times for each in every)
        one.compilations = [
            msgspec.structs.replace(
                same[0],
                repeats=_repeats(same),
                duration_ns=max(each.duration_ns for each in same),
            )
            for same in zip(*(each.compilations for each in every), strict=True)
        ]
        waiting += zip(*(each.frames for each in every), strict=True)
        for same_breaks in zip(*(each.breaks for each in every), strict=True):
            waiting += zip(*(broken.frames for broken in same_breaks), strict=True)


def _repeats(same: tuple[TreeCompilation, ...]) -> tuple[str, ...]:
    """The compile ids of all but the first, each once."""
    names = dict.fromkeys(name for each in same for name in each.compile_ids)
    del names[same[0].key[2]]
    return tuple(names)


def _renumbered(frames: list[TreeFrame], roots: list[int]) -> tuple[list[TreeFrame], list[int]]:
    """Only what is left. Children follow their parents, so one pass finds them all."""
    wanted = set(roots)
    new: dict[int, int] = {}
    left: list[TreeFrame] = []
    for number, frame in enumerate(frames):
        if number in wanted or frame.parent in new:
            new[number] = len(left)
            left.append(frame)
    for frame in left:
        if frame.parent is not None:
            frame.parent = new[frame.parent]
        if frame.frames:
            frame.frames = [new[child] for child in frame.frames]
        for broken in frame.breaks:
            if broken.frames:
                broken.frames = [new[child] for child in broken.frames]
            if broken.goes_on_in is not None:
                broken.goes_on_in = new.get(broken.goes_on_in)
    return left, [new[root] for root in roots]
