"""Every cause in one line, in the order to look at them: what a summary ends with."""

from __future__ import annotations

from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    """The full report explains each cause at length instead, the summary a single one, a sweep
    by job."""
    if reading.full or reading.digest.jobs or reading.digest.benchmarks or len(reading.causes) < 2:
        return []
    from compilescope.report.cause_list import causes_table

    return [causes_table(reading, 1)]


SECTION = Section("causes", 15, _build, "Causes", "in the order to look at them")
