"""Where the time of a step goes, if the run was profiled."""

from __future__ import annotations

from compilescope.report.section import Section
from compilescope.report.step_rows import step_blocks

SECTION = Section("step", 13, step_blocks, "A step", "where its time goes")
