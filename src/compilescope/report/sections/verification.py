"""What `verify` said of the change that led to this version of the program."""

from __future__ import annotations

from compilescope.record.bodies import ChangeOutcome
from compilescope.report.blocks import Block
from compilescope.report.section import Reading, Section
from compilescope.report.verified_change import change_blocks


def _build(reading: Reading) -> list[Block]:
    found: list[Block] = []
    for _, body in reading.run.of(ChangeOutcome):
        found += change_blocks(body, reading.root)
    return found


SECTION = Section("verification", 7, _build, "Verify", "this version compared with another one")
