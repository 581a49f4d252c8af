"""Entry points of a compile tree that look the same all the way down, joined."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from compilescope.analysis.tree.frames import TreeBreak, TreeCompilation, TreeFrame

_look = attrgetter(
    *("ops", "ended_by_break", "backend", "ok", "called_from", "again", "recompiled", "refused"),
    *("backward", "failures", "within_another"),
)
"""All but what differs between any two runs: ids and times."""


def merged(frames: list[TreeFrame]) -> tuple[list[TreeFrame], list[int]]:
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
