"""CUDA graphs that were asked for and not used."""

from __future__ import annotations

from compilescope.report.blocks import Block, Paragraph, words
from compilescope.report.places import count
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    def line(_: int, told: tuple[str, int]) -> Block:
        reason, times = told
        return Paragraph(words(f"{reason} ({count(times, 'time')})"), "-")

    return first_items(reading, list(reading.digest.cudagraph_skips.items()), line, SECTION.id)


SECTION = Section("cudagraphs", 110, _build, "CUDA graphs not used")
