"""Recompiles by function and cause, with the values that failed each guard."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    if not reading.digest.recompiles:
        return []
    from compilescope.report.explanation import recompile_item

    return first_items(
        reading,
        reading.digest.recompiles,
        lambda number, frame: recompile_item(number, frame, reading),
        "recompiles",
    )


SECTION = Section("recompiles", 35, _build, "Recompiles", "guards that failed", in_summary=False)
