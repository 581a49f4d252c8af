"""Functions that run eagerly, and why."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    if not reading.digest.eager_frames:
        return []
    from compilescope.report.explanation import eager_item

    return first_items(
        reading,
        reading.digest.eager_frames,
        lambda number, frame: eager_item(number, frame, reading),
        "eager",
    )


SECTION = Section(
    "eager", 40, _build, "Eager functions", "Dynamo fell back to eager for these", in_summary=False
)
