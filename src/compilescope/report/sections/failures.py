"""Compilations that failed."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    if not reading.digest.failures:
        return []
    from compilescope.report.explanation import failure_item

    return first_items(
        reading,
        reading.digest.failures,
        lambda number, failure: failure_item(number, failure, reading),
        "failures",
    )


SECTION = Section(
    "failures", 20, _build, "Failures", "compilation raised an error", in_summary=False
)
