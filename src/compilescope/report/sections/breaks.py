"""Graph breaks: each one once, with its lines, its id and what to do."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.explanation import site_item
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    return [site_item(number, site, reading) for number, site in enumerate(reading.digest.sites, 1)]


SECTION = Section(
    "breaks", 30, _build, "Graph breaks", "where Dynamo had to stop", in_summary=False
)
