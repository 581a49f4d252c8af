"""Frames that torch skipped without a word."""

from __future__ import annotations

from compilescope.report.blocks import Block, Item, Paragraph, Span, words
from compilescope.report.places import place
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    blocks: list[Block] = []
    for number, skip in enumerate(reading.digest.unexplained_skips, 1):
        where = Span(place(skip.file, skip.line, reading.root), "strong")
        left = words(where, f" {skip.function}")
        blocks.append(Item(str(number), left, blocks=(Paragraph(words(skip.reason)),)))
    return blocks


SECTION = Section("skips", 45, _build, "Unexplained skips", "torch gave no reason")
