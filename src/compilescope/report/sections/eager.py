"""Functions that run eagerly, and why."""

from __future__ import annotations

from compilescope.report.blocks import Block, Item, Paragraph, Span, words
from compilescope.report.places import place
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    blocks: list[Block] = []
    for number, frame in enumerate(reading.digest.eager_frames, 1):
        where = Span(place(frame.file, frame.line, reading.root), "strong")
        share = "from the break on" if frame.rest_only else "as a whole"
        gb_id = f"{frame.gb_id} " if frame.gb_id else ""
        why = Paragraph(words(f"{gb_id}{frame.reason}"))
        left, right = words(where, f" {frame.function}"), words(Span(share, "warn"))
        blocks.append(
            Item(str(number), left, right, (why,), f"eager-{frame.because[0]}", ("kind:eager",))
        )
    return blocks


SECTION = Section("eager", 40, _build, "Left to eager mode", "functions that Dynamo gave up")
