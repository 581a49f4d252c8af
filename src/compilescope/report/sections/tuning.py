"""What a search for a faster step came to."""

from __future__ import annotations

from compilescope.record.bodies import TuneAttempt, TuneOutcome
from compilescope.report.blocks import Block, Diff, Heading
from compilescope.report.placements import PLACEMENTS, placement_blocks
from compilescope.report.section import Reading, Section
from compilescope.report.tuning import apart_blocks, attempts_table, outcome_blocks, reason_blocks


def _build(reading: Reading) -> list[Block]:
    found: list[Block] = []
    attempts = [body for _, body in reading.run.of(TuneAttempt)]
    for _, body in reading.run.of(TuneOutcome):
        found += outcome_blocks(body)
        if attempts:
            found.append(attempts_table(attempts))
            found += reason_blocks(attempts)
        if body.placements:
            found += [Heading(PLACEMENTS), *placement_blocks(body.placements)]
        if body.diff:
            found += [Heading("Changes"), Diff(body.diff)]
        apart = list(apart_blocks(attempts))
        if apart:
            found += [Heading("Offered apart"), *apart]
    return found


SECTION = Section("tuning", 9, _build, "A faster step", "each candidate by turns with the original")
