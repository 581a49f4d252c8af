"""Recompiles by function and cause, with the values that failed each guard."""

from __future__ import annotations

from compilescope.report.blocks import Block, Heading, Item, Paragraph, Span, Words, words
from compilescope.report.places import count, place
from compilescope.report.section import Section
from compilescope.rules.digest import Digest
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame

_MOST_CAUSES = 5


def _build(digest: Digest) -> list[Block]:
    if not digest.recompiles:
        return []
    blocks: list[Block] = [Heading("Recompiles", "guards that did not hold")]
    for number, frame in enumerate(digest.recompiles, 1):
        blocks += _frame(number, frame, digest.root)
    return blocks


def _frame(number: int, frame: RecompiledFrame, root: str) -> list[Block]:
    part = f" from line {frame.resumed_at} on" if frame.resumed_at else ""
    left = words(Span(place(frame.file, frame.line, root), "strong"), f" {frame.function}{part}")
    right = words(Span(count(frame.count, "recompile"), "warn"))
    blocks: list[Block] = [Item(str(number), left, right)]
    for cause in frame.causes[:_MOST_CAUSES]:
        blocks.append(Paragraph(_cause(cause, root), depth=1, hanging="-"))
    if len(frame.causes) > _MOST_CAUSES:
        more = f"and {len(frame.causes) - _MOST_CAUSES} more; see --json"
        blocks.append(Paragraph(words(Span(more, "dim")), depth=1))
    if frame.limit_hit:
        gave_up = (
            f"The recompile limit was hit after {count(frame.count + 1, 'compilation')}: "
            "calls that fit none of them now run eagerly."
        )
        blocks.append(Paragraph(words(Span(gave_up, "bad")), depth=1))
    return blocks


def _cause(cause: RecompileCause, root: str) -> Words:
    if cause.expected or cause.actual:
        change = f": expected {cause.expected or '?'}, got {cause.actual or '?'}"
    else:
        change = f": {cause.guard}"
    where = ""
    if cause.file is not None and cause.line is not None:
        where = f"  guarded at {place(cause.file, cause.line, root)}"
    return words(Span(cause.subject, "code"), change, Span(where, "dim"))


SECTION = Section("recompiles", 50, _build)
