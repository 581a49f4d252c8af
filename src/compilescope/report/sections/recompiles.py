"""Recompiles by function and cause, with the values that failed each guard."""

from __future__ import annotations

from compilescope.report.advice import advice_blocks
from compilescope.report.blocks import Block, Item, Paragraph, Span, Words, note, words
from compilescope.report.explanation import recompile_cost, recompile_item
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame

_MOST_CAUSES = 5


def _build(reading: Reading) -> list[Block]:
    frames = enumerate(reading.digest.recompiles, 1)
    if reading.full:
        return [recompile_item(number, frame, reading) for number, frame in frames]
    return [_frame(number, frame, reading) for number, frame in frames]


def _frame(number: int, frame: RecompiledFrame, reading: Reading) -> Item:
    root = reading.root
    part = f" from line {frame.resumed_at} on" if frame.resumed_at else ""
    left = words(Span(place(frame.file, frame.line, root), "strong"), f" {frame.function}{part}")
    right = words(Span(recompile_cost(frame), "warn"))
    blocks: list[Block] = []
    for cause in frame.causes[:_MOST_CAUSES]:
        blocks.append(Paragraph(_cause(cause, root), "-"))
        where = f"`{cause.subject}` in {frame.function}"
        blocks += advice_blocks(cause.advice, reading.told, where, brief=True)
    if len(frame.causes) > _MOST_CAUSES:
        blocks.append(note(f"and {len(frame.causes) - _MOST_CAUSES} more; {reading.see_all}"))
    if frame.limit_hit:
        gave_up = (
            f"The recompile limit was hit after {count(frame.count + 1, 'compilation')}: "
            "calls that fit none of them now run eagerly."
        )
        blocks.append(Paragraph(words(Span(gave_up, "bad"))))
    return Item(str(number), left, right, tuple(blocks))


def _cause(cause: RecompileCause, root: str) -> Words:
    if cause.expected or cause.actual:
        change = f": expected {cause.expected or '?'}, got {cause.actual or '?'}"
    else:
        change = f": {cause.guard}"
    if cause.also:
        change += f", and {len(cause.also)} more like it"
    where = ""
    if cause.file is not None and cause.line is not None:
        where = f"  guarded at {place(cause.file, cause.line, root)}"
    return words(Span(cause.subject, "code"), change, Span(where, "dim"))


SECTION = Section("recompiles", 70, _build, "Recompiles", "guards that did not hold")
