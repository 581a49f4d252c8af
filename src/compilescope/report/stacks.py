"""The stacks behind a cause: how the program got there."""

from __future__ import annotations

from collections.abc import Iterable

from compilescope.model.stack import Frame
from compilescope.report.blocks import Block, Fold, Paragraph, Span, Words, note, words
from compilescope.report.places import count, place
from compilescope.report.section import Reading

# Chosen: stacks of one cause, and calls of each, the innermost; the rest is counted.
_MOST_STACKS = 20
_MOST_FRAMES = 60


def folded_stacks(because: Iterable[str], reading: Reading) -> list[Block]:
    """The distinct stacks of these events, shut until asked for."""
    stacks: dict[tuple[Frame, ...], int] = {}
    for event_id in because:
        event = reading.events_by_id.get(event_id)
        if event is not None and event.stack:
            stacks[event.stack] = stacks.get(event.stack, 0) + 1
    if not stacks:
        return []
    blocks: list[Block] = []
    for stack, times in list(stacks.items())[:_MOST_STACKS]:
        if len(stacks) > 1:
            blocks.append(note(count(times, "time")))
        if len(stack) > _MOST_FRAMES:
            blocks.append(note(f"{len(stack) - _MOST_FRAMES} outer calls not shown"))
        blocks += [Paragraph(_call(frame, reading.root)) for frame in stack[-_MOST_FRAMES:]]
    if len(stacks) > _MOST_STACKS:
        blocks.append(note(f"and {len(stacks) - _MOST_STACKS} more stacks"))
    label = "Stack" if len(stacks) == 1 else f"{len(stacks)} stacks"
    return [Fold(words(label), tuple(blocks))]


def _call(frame: Frame, root: str) -> Words:
    at = Span(place(frame.file, frame.line, root), "strong")
    return words(at, f" in {frame.function}  ", Span(frame.source.strip(), "code"))
