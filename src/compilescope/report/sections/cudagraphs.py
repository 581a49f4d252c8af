"""CUDA graphs that were asked for and not used."""

from __future__ import annotations

from compilescope.report.blocks import Block, Paragraph, words
from compilescope.report.places import count
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    return [
        Paragraph(words(f"{reason} ({count(times, 'time')})"), "-")
        for reason, times in reading.digest.cudagraph_skips.items()
    ]


SECTION = Section("cudagraphs", 110, _build, "CUDA graphs not used")
