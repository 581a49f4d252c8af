"""Compilations that failed."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.explanation import failure_item
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    failures = enumerate(reading.digest.failures, 1)
    return [failure_item(number, failure, reading) for number, failure in failures]


SECTION = Section(
    "failures", 20, _build, "Failures", "compilation raised an error", in_summary=False
)
