"""Where the time of a step goes, if the run was profiled."""

from __future__ import annotations

from compilescope.model.bodies import StepsProfiled
from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    if not any(True for _ in reading.run.of(StepsProfiled)):
        return []
    from compilescope.report.step_rows import step_blocks

    return step_blocks(reading)


SECTION = Section("step", 13, _build, "A step", "where its time goes")
