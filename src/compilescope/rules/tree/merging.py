"""Entry points that look the same all the way down, on several ranks or after resets, as one."""

from __future__ import annotations

import msgspec

from compilescope.rules.tree.frames import TreeBreak, TreeCompilation, TreeFrame


def merged(frames: list[TreeFrame]) -> tuple[list[TreeFrame], list[int]]:
    """The frames that are left, numbered anew, and the entry points among them."""
    kinds = _kinds(frames)
    kept: dict[int, int] = {}
    roots: list[int] = []
    for number, frame in enumerate(frames):
        if frame.parent is not None:
            continue
        first = kept.setdefault(kinds[number], number)
        if first == number:
            roots.append(number)
        else:
            _join(frames, first, number)
    return _renumbered(frames, roots)


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


def _join(frames: list[TreeFrame], first: int, second: int) -> None:
    """Adds to one tree what the other, which looks the same, has of its own."""
    waiting = [(first, second)]
    while waiting:
        into, out = waiting.pop()
        one, other = frames[into], frames[out]
        one.ranks = tuple(sorted({*one.ranks, *other.ranks}))
        one.times += other.times
        one.compilations = [
            msgspec.structs.replace(
                mine,
                compile_ids=tuple(dict.fromkeys((*mine.compile_ids, *theirs.compile_ids))),
                duration_ns=max(mine.duration_ns, theirs.duration_ns),
            )
            for mine, theirs in zip(one.compilations, other.compilations, strict=True)
        ]
        waiting += zip(one.frames, other.frames, strict=True)
        for mine, theirs in zip(one.breaks, other.breaks, strict=True):
            waiting += zip(mine.frames, theirs.frames, strict=True)


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
