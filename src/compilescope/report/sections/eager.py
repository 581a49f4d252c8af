"""Functions that run eagerly, and why."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.explanation import eager_item
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    frames = enumerate(reading.digest.eager_frames, 1)
    return [eager_item(number, frame, reading) for number, frame in frames]


SECTION = Section(
    "eager", 40, _build, "Eager functions", "Dynamo fell back to eager for these", in_summary=False
)
