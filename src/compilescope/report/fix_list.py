"""The list of all fixes: what each is for, and whether a program behaves differently after it."""

from __future__ import annotations

import msgspec

from compilescope.report.blocks import (
    Block,
    Document,
    Item,
    Paragraph,
    Part,
    Span,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.places import count


class FixLine(msgspec.Struct, frozen=True, kw_only=True):
    """One fix of the repertoire."""

    id: str
    title: str
    rules: tuple[str, ...]
    kind: str
    safe: bool
    why: str


def repertoire_document(fixes: tuple[FixLine, ...]) -> Document:
    blocks: list[Block] = []
    for number, fix in enumerate(fixes, 1):
        told: Words = words(Span("safe", "good") if fix.safe else Span("visible change", "warn"))
        if fix.kind == "scaffold":
            told = words(Span("finish by hand", "warn"))
        inside: list[Block] = [note("for " + ", ".join(fix.rules))]
        if not fix.safe:
            inside.append(Paragraph(prose(fix.why)))
        left = words(Span(fix.id, "strong"), f"  {fix.title}")
        blocks.append(Item(str(number), left, told, tuple(inside)))
    subtitle = f"{count(len(fixes), 'fix', 'fixes')}, in the order they are tried"
    return Document("What compilescope can fix", subtitle, (Part("fixes", "", tuple(blocks)),))
