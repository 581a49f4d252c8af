"""How a sweep's jobs ended and what they have in common."""

from __future__ import annotations

from compilescope.knowledge.analysis.sweeps import is_sweep, sweep_of
from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section
from compilescope.report.sweeps import sweep_blocks


def _build(reading: Reading) -> list[Block]:
    if not is_sweep(reading.run):
        return []
    return sweep_blocks(sweep_of(reading.run), full=reading.full, jobs_at=reading.jobs_at)


SECTION = Section("sweep", 1, _build)
