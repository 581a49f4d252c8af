"""A compile tree by time: a cell for each function and compilation, as wide as it took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.analysis.tree.frames import CompileTree, TreeCompilation, TreeFrame
from compilescope.report.blocks import Cell, plain
from compilescope.report.places import count, first_line, place
from compilescope.report.targets import Targets
from compilescope.report.tree_view import TreeDrawing, shown_ids

# Chosen: the longest ones; shorter cells are too narrow to see.
_MOST_FRAMES = 250
_MOST_COMPILATIONS = 40
_DEEPEST = 16
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
        self._kept = {number for number in longest[:_MOST_FRAMES] if self._totals[number]}

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
        if depth < _DEEPEST:
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
        if len(timed) > _MOST_COMPILATIONS:
            least = sorted(one.duration_ns for one in timed)[-_MOST_COMPILATIONS]
            timed = [one for one in timed if one.duration_ns >= least][:_MOST_COMPILATIONS]
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
