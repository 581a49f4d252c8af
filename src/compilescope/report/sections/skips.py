"""Frames that torch skipped without a word."""

from __future__ import annotations

from compilescope.knowledge.findings.eager import UnexplainedSkip
from compilescope.report.blocks import Block, Item, Paragraph, Span, words
from compilescope.report.places import place
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    def item(number: int, skip: UnexplainedSkip) -> Item:
        where = Span(place(skip.file, skip.line, reading.root), "strong")
        left = words(where, f" {skip.function}")
        return Item(str(number), left, blocks=(Paragraph(words(skip.reason)),))

    return first_items(reading, reading.digest.unexplained_skips, item, SECTION.id)


SECTION = Section("skips", 45, _build, "Unexplained skips", "torch gave no reason")
