"""A compile tree as a reader can follow it: as branches, so many and so deep, and by time.

By time it is an icicle: a cell for each function and compilation, as wide as it took.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compilescope.knowledge.analysis.tree.frames import (
    CompileTree,
    EagerReason,
    TreeBreak,
    TreeCompilation,
    TreeFrame,
)
from compilescope.report.blocks import Branch, Cell, Span, Style, Words, plain, words
from compilescope.report.links import Targets
from compilescope.report.places import count, first_line, place
from compilescope.report.render.spans import duration

# Chosen: as much as can be followed by eye, and a page that opens quickly; what is left out is
# counted.
_MOST_ROOTS = 200
_MOST_FRAMES = 400
_FEWEST_FRAMES = 3
"""Under each entry point, however many there are. Chosen: an entry point, its first break and what
comes after."""
# Chosen, of one function: likewise.
_MOST_COMPILATIONS = 10
_MOST_IDS = 40
_MOST_BREAKS = 100
_MOST_REASONS = 20
_AGAIN = {
    "": "recompiled",
    "limit": "not recompiled, limit reached",
    "error": "not recompiled, raised an error",
}
_DEEPEST = 12
"""Frames below one another; what lies deeper is drawn side by side. Chosen: lines stay within a
screen's width."""


class TreeDrawing:
    """Draws the frames of a tree."""

    def __init__(self, tree: CompileTree, root: str, sites: Iterable[str]) -> None:
        self._tree = tree
        self._root = root
        self._sites = frozenset(sites)
        self._room = 0
        self._drawn = 0
        self._several_ranks = len({rank for frame in tree.frames for rank in frame.ranks}) > 1

    @property
    def left_out(self) -> int:
        """Frames that were not drawn."""
        return len(self._tree.frames) - self._drawn

    def branches(self) -> tuple[Branch, ...]:
        roots = self._tree.roots[:_MOST_ROOTS]
        share = max(_MOST_FRAMES // max(len(roots), 1), _FEWEST_FRAMES)
        found: list[Branch] = []
        for number in roots:
            self._room = share
            found += self._drawn_frames([number], 0)
        return tuple(found)

    def _drawn_frames(self, numbers: Sequence[int], depth: int) -> list[Branch]:
        found: list[Branch] = []
        waiting = list(reversed(numbers))
        while waiting and self._room > 0:
            number = waiting.pop()
            frame = self._tree.frames[number]
            self._room -= 1
            self._drawn += 1
            below = depth < _DEEPEST
            found.append(Branch(*self._head(frame), tuple(self._inside(frame, depth, below))))
            if not below:
                waiting += reversed(
                    [*frame.frames, *(n for broken in frame.breaks for n in broken.frames)]
                )
        if waiting:
            found.append(
                Branch(words(Span(f"and {len(waiting)} more, with everything below", "dim")))
            )
        return found

    def _inside(self, frame: TreeFrame, depth: int, below: bool) -> list[Branch]:
        found = []
        if len(frame.compilations) > 1:
            shown = frame.compilations[:_MOST_COMPILATIONS]
            found += [Branch(self.compilation(one)) for one in shown]
            found += _more(len(frame.compilations) - len(shown), "more compilation")
        found += [Branch(_eager(reason)) for reason in frame.eager[:_MOST_REASONS]]
        found += _more(len(frame.eager) - _MOST_REASONS, "more reason")
        for broken in frame.breaks[:_MOST_BREAKS]:
            frames = self._drawn_frames(broken.frames, depth + 1) if below else []
            found.append(Branch(self._break(broken, frame), branches=tuple(frames)))
        found += _more(len(frame.breaks) - _MOST_BREAKS, "more graph break")
        if below:
            found += self._drawn_frames(frame.frames, depth + 1)
        return found

    def _head(self, frame: TreeFrame) -> tuple[Words, Words]:
        code = frame.code
        at = place(code.file, code.line, self._root)
        if not code.resumed:
            name = words(Span(at, "strong"), f" {code.function}")
        elif frame.parent is None:
            name = words(Span(at, "strong"), f" {code.function} (from line {code.resumed_at})")
        else:
            name = words(Span(f"continues at line {code.resumed_at}", "strong"))
        one = frame.compilations[0] if len(frame.compilations) == 1 else None
        notes = list(self.compilation(one)) if one is not None else []
        told = self._remarks(frame)
        if told:
            notes.append(Span((" · " if notes else "") + " · ".join(told), "dim"))
        return name, tuple(notes)

    def _remarks(self, frame: TreeFrame) -> list[str]:
        told = []
        at = frame.called_from
        above = self._tree.frames[frame.parent].code.file if frame.parent is not None else ""
        if at is not None and (at.file != above or frame.through):
            told.append(f"called at {place(at.file, at.line, self._root)} in {at.function}")
        elif at is not None:
            told.append(f"called from line {at.line}")
        if frame.parent is not None:
            return told
        if self._several_ranks:
            ranks = ", ".join(map(str, frame.ranks))
            told.append(f"on rank{'s' if len(frame.ranks) > 1 else ''} {ranks}")
        if frame.times > len(frame.ranks):
            told.append(f"the same {frame.times} times, in several processes or after resets")
        elif frame.epoch:
            told.append("after torch._dynamo.reset()")
        return told

    def compilation(self, one: TreeCompilation) -> Words:
        parts = [Span(shown_ids(one), "code")]
        told = [] if one.refused else [_graphs(one)]
        if one.duration_ns:
            told.append(duration(one.duration_ns))
        if one.backward == "compiled":
            told.append("with backward")
        parts.append(Span("".join(f" · {text}" for text in told)))
        if one.again:
            why = one.recompiled or "PyTorch names no guard"
            style: Style = "bad" if one.refused else "warn"
            parts.append(Span(f" · {_AGAIN[one.refused]}: {why}", style))
        parts += [Span(f" · {failure}", "bad") for failure in one.failures]
        if one.called_from is not None:
            at = one.called_from
            called = f" · called at {place(at.file, at.line, self._root)} in {at.function}"
            parts.append(Span(called, "dim"))
        return tuple(parts)

    def _break(self, broken: TreeBreak, frame: TreeFrame) -> Words:
        target = broken.fingerprint if broken.fingerprint in self._sites else ""
        name = f"{broken.gb_id} {broken.gb_type}" if broken.gb_id else broken.gb_type
        where = ""
        if (broken.file, broken.site_line) != (frame.code.file, broken.line):
            at = place(broken.file, broken.site_line, self._root)
            where = f", at {at} in {broken.function}"
        rest = ""
        if broken.goes_on_in is not None:
            ids = self._tree.frames[broken.goes_on_in].compilations
            rest = f", continues like {ids[0].compile_ids[0]}" if ids else ""
        return words(
            f"graph break at line {broken.line}: ",
            Span(name, "warn", target),
            Span(where + rest, "dim"),
        )


def shown_ids(one: TreeCompilation) -> str:
    """Of what was compiled alike over and over, the first."""
    more = len(one.compile_ids) - _MOST_IDS
    shown = ", ".join(one.compile_ids[:_MOST_IDS])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _more(number: int, what: str) -> list[Branch]:
    """What says that so many are not drawn, if any."""
    return [Branch(words(Span(f"and {count(number, what)}", "dim")))] if number > 0 else []


def _graphs(one: TreeCompilation) -> str:
    if not one.ops:
        return "no graph"
    known = [ops for ops in one.ops if ops is not None]
    text = count(sum(known), "op") if len(known) == len(one.ops) else "a graph"
    if len(one.ops) > 1:
        text = f"{len(one.ops)} graphs, {text}"
    return text + (" up to the break" if one.ended_by_break else "")


def _eager(reason: EagerReason) -> Words:
    gb_id = f"{reason.gb_id} " if reason.gb_id else ""
    why = first_line(reason.reason).split(". ", 1)[0] or reason.cause
    style: Style = "dim" if reason.cause == "harmless" else "bad"
    return words(Span(f"runs eagerly: {gb_id}{why}", style))


# Chosen: the longest ones; shorter cells are too narrow to see.
_MOST_CELLS = 250
_MOST_COMPILATION_CELLS = 40
_DEEPEST_CELLS = 16
"""Functions below one another; what lies deeper is drawn side by side. Chosen: a screen has room
for that many rows."""


class Icicle:
    """Draws the frames of a tree that took longest; nothing where no time is known."""

    def __init__(
        self, tree: CompileTree, drawing: TreeDrawing, targets: Targets, root: str
    ) -> None:
        self._tree = tree
        self._drawing = drawing
        self._targets = targets
        self._root = root
        self._totals = _totals(tree)
        longest = sorted(range(len(self._totals)), key=lambda number: -self._totals[number])
        # No frame takes longer than the one above it, which has the lower number: it is kept too.
        self._kept = {number for number in longest[:_MOST_CELLS] if self._totals[number]}

    @property
    def left_out(self) -> int:
        """Frames whose time is known and that were not drawn."""
        return sum(map(bool, self._totals)) - len(self._kept)

    def cells(self) -> tuple[Cell, ...]:
        """Nothing for a single compilation either: there is nothing to compare it with."""
        found = [self._frame(number, 0) for number in self._tree.roots if number in self._kept]
        return tuple(found) if len(found) > 1 or any(cell.cells for cell in found) else ()

    def _frame(self, number: int, depth: int) -> Cell:
        frame = self._tree.frames[number]
        if depth < _DEEPEST_CELLS:
            below = [self._frame(child, depth + 1) for child in self._children(number)]
        else:
            below = [self._alone(child) for child in self._all_below(number)]
        return self._cell(frame, self._totals[number], below)

    def _alone(self, number: int) -> Cell:
        frame = self._tree.frames[number]
        return self._cell(frame, _own_ns(frame), [])

    def _children(self, number: int) -> list[int]:
        return [child for child in children(self._tree.frames[number]) if child in self._kept]

    def _all_below(self, number: int) -> Iterator[int]:
        waiting = self._children(number)[::-1]
        while waiting:
            child = waiting.pop()
            if _own_ns(self._tree.frames[child]):
                yield child
            waiting += self._children(child)[::-1]

    def _cell(self, frame: TreeFrame, total_ns: int, below: list[Cell]) -> Cell:
        timed = [one for one in frame.compilations if one.duration_ns]
        one = timed[0] if len(timed) == 1 else None
        parts = self._compilations(timed) if one is None else []
        return Cell(
            label=_name(frame, self._root),
            duration_ns=total_ns,
            kind=_frame_kind(frame, one),
            detail=self._detail(frame, one),
            target=self._target(frame),
            cells=(*parts, *below),
        )

    def _compilations(self, timed: list[TreeCompilation]) -> list[Cell]:
        if len(timed) > _MOST_COMPILATION_CELLS:
            least = sorted(one.duration_ns for one in timed)[-_MOST_COMPILATION_CELLS]
            timed = [one for one in timed if one.duration_ns >= least][:_MOST_COMPILATION_CELLS]
        return [
            Cell(
                label=shown_ids(one),
                duration_ns=one.duration_ns,
                kind=_kind(one),
                detail=plain(self._drawing.compilation(one)),
                target=self._targets.of_compilation(one.key),
            )
            for one in timed
        ]

    def _detail(self, frame: TreeFrame, one: TreeCompilation | None) -> str:
        told = [plain(self._drawing.compilation(one))] if one is not None else []
        if len(frame.compilations) > 1:
            told.append(count(len(frame.compilations), "compilation"))
        reasons = [reason for reason in frame.eager if reason.cause != "harmless"]
        told += [f"runs eagerly: {first_line(reason.reason) or reason.cause}" for reason in reasons]
        return " · ".join(told)

    def _target(self, frame: TreeFrame) -> str:
        """Of several compilations a recompile tells most."""
        ranked = sorted(frame.compilations, key=lambda one: not one.again)
        return next(filter(None, (self._targets.of_compilation(one.key) for one in ranked)), "")


def children(frame: TreeFrame) -> Sequence[int]:
    if not frame.breaks:
        return frame.frames  # As of most of a hundred thousand.
    return [*(child for broken in frame.breaks for child in broken.frames), *frame.frames]


def _own_ns(frame: TreeFrame) -> int:
    return sum([one.duration_ns for one in frame.compilations])


def _totals(tree: CompileTree) -> list[int]:
    """By frame, with all below it. What was compiled during another compilation counts once."""
    totals = [_own_ns(frame) for frame in tree.frames]
    if not any(totals):
        return totals
    within = [
        sum([one.duration_ns for one in frame.compilations if one.within_another])
        for frame in tree.frames
    ]
    # Parents come before children, so from the end on all below a frame is known.
    for number in range(len(totals) - 1, -1, -1):
        frame = tree.frames[number]
        under = children(frame)
        if not under:
            continue
        below = sum([totals[child] for child in under])
        inside = sum([within[child] for child in under])
        totals[number] = max(totals[number] + below - inside, below)
    return totals


def _name(frame: TreeFrame, root: str) -> str:
    code = frame.code
    if code.resumed:
        return f"{code.function} (from line {code.resumed_at})"
    return f"{code.function} ({place(code.file, code.line, root)})"


def _frame_kind(frame: TreeFrame, one: TreeCompilation | None) -> str:
    if any(reason.cause != "harmless" for reason in frame.eager):
        return "eager"
    return _kind(one) if one is not None else "function"


def _kind(one: TreeCompilation) -> str:
    """What the colour tells."""
    if one.failures or one.backward == "failed":
        return "failed"
    if one.ok is False:
        return "eager"
    if one.again:
        return "recompile"
    return "break" if one.ended_by_break else "first"
