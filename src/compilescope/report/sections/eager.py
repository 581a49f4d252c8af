"""Functions that run eagerly, and why."""

from __future__ import annotations

from compilescope.report.blocks import Block, Heading, Item, Paragraph, Span, words
from compilescope.report.places import place
from compilescope.report.section import Section
from compilescope.rules.digest import Digest


def _build(digest: Digest) -> list[Block]:
    blocks: list[Block] = []
    if digest.eager_frames:
        blocks.append(Heading("Left to eager mode", "functions that Dynamo gave up"))
    for number, frame in enumerate(digest.eager_frames, 1):
        where = words(
            Span(place(frame.file, frame.line, digest.root), "strong"), f" {frame.function}"
        )
        share = "from the break on" if frame.rest_only else "as a whole"
        blocks.append(Item(str(number), where, words(Span(share, "warn"))))
        gb_id = f"{frame.gb_id} " if frame.gb_id else ""
        blocks.append(Paragraph(words(f"{gb_id}{frame.reason}"), depth=1))
    if digest.unexplained_skips:
        blocks.append(Heading("Unexplained skips", "torch gave no reason"))
    for number, skip in enumerate(digest.unexplained_skips, 1):
        where = words(Span(place(skip.file, skip.line, digest.root), "strong"), f" {skip.function}")
        blocks.append(Item(str(number), where))
        blocks.append(Paragraph(words(skip.reason), depth=1))
    return blocks


SECTION = Section("eager", 40, _build)
