"""What `check` said of the program when it ran it."""

from __future__ import annotations

from compilescope.record.bodies import CheckOutcome
from compilescope.report.blocks import Block, Paragraph, note
from compilescope.report.gate import limits_table, verdict_words
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    found: list[Block] = []
    for _, body in reading.run.of(CheckOutcome):
        found += [Paragraph(verdict_words(body.outcome, body.checks)), limits_table(body.checks)]
        if body.baseline:
            found.append(note(f"Checked against the baseline {body.baseline}."))
        if body.own:
            found.append(note("Only causes in your own files counted (--own)."))
    return found


SECTION = Section("gate", 8, _build, "Check", "with the limits of that time")
