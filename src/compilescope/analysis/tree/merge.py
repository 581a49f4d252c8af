"""Joins entry points of the compile tree that look the same all the way down.

The same program on several ranks, or after `torch._dynamo.reset`, is drawn once.
"""

from __future__ import annotations

import msgspec

from compilescope.analysis.tree.frames import TreeBreak, TreeCompilation, TreeFrame


def merged(frames: list[TreeFrame]) -> tuple[list[TreeFrame], list[int]]:
    """The frames that are left, numbered anew, and the entry points among them."""
    kinds = _kinds(frames)
    alike: dict[int, list[int]] = {}
    for number, frame in enumerate(frames):
        if frame.parent is None:
            alike.setdefault(kinds[number], []).append(number)
    for same in alike.values():
        if len(same) > 1:
            _join(frames, same)
    return _renumbered(frames, [same[0] for same in alike.values()])


def _kinds(frames: list[TreeFrame]) -> list[int]:
    """For each frame a number that it shares with those that look the same all the way down."""
    numbers: dict[object, int] = {}
    kinds = [0] * len(frames)
    # Parents come before children, so from the end on all below a frame is known.
    for number in range(len(frames) - 1, -1, -1):
        frame = frames[number]
        look = (
            frame.code,
            frame.called_from,
            frame.through,
            tuple(_look(compilation) for compilation in frame.compilations),
            tuple(frame.eager),
            tuple(_break_look(broken, kinds) for broken in frame.breaks),
            tuple(kinds[child] for child in frame.frames),
        )
        kinds[number] = numbers.setdefault(look, len(numbers))
    return kinds


def _look(compilation: TreeCompilation) -> TreeCompilation:
    """Without what differs between any two runs."""
    return msgspec.structs.replace(compilation, compile_ids=(), key=None, duration_ns=0)


def _break_look(broken: TreeBreak, kinds: list[int]) -> tuple[object, ...]:
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
                compile_ids=tuple(
                    dict.fromkeys(name for each in same for name in each.compile_ids)
                ),
                duration_ns=max(each.duration_ns for each in same),
            )
            for same in zip(*(each.compilations for each in every), strict=True)
        ]
        waiting += zip(*(each.frames for each in every), strict=True)
        for same_breaks in zip(*(each.breaks for each in every), strict=True):
            waiting += zip(*(broken.frames for broken in same_breaks), strict=True)


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
        frame.frames = [new[child] for child in frame.frames]
        for broken in frame.breaks:
            broken.frames = [new[child] for child in broken.frames]
            if broken.goes_on_in is not None:
                broken.goes_on_in = new.get(broken.goes_on_in)
    return left, [new[root] for root in roots]
