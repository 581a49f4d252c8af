"""Graph breaks: each one once, with its lines, its id and what to do."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    if not reading.digest.sites:
        return []
    from compilescope.report.explanation import site_item

    return first_items(
        reading,
        reading.digest.sites,
        lambda number, site: site_item(number, site, reading),
        "breaks",
    )


SECTION = Section(
    "breaks", 30, _build, "Graph breaks", "where a graph had to end", in_summary=False
)
