"""Versions that are no loss, and that a small change would spare: a size fixed at first."""

from __future__ import annotations

from compilescope.knowledge.analysis.findings import distinct
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import RecompileFinding, is_of_size
from compilescope.report.blocks import Block
from compilescope.report.cause_list import cause_item
from compilescope.report.section import Reading, Section

_MOST_IN_SUMMARY = 1
"""Chosen: where there is a cause, that is what to read; here nothing is lost."""


def _build(reading: Reading) -> list[Block]:
    found = spared(reading)
    if not reading.full:
        found = [] if reading.causes else found[:_MOST_IN_SUMMARY]
    return [cause_item(number, each, reading) for number, each in enumerate(found, 1)]


def spared(reading: Reading) -> list[Finding]:
    """Of one kind each, what cost most first."""
    causes = (
        cause
        for frame in reading.digest.recompiles
        for cause in frame.causes
        if cause.needed and _is_of_ordinary_size(cause) and _is_helped(cause)
    )
    return sorted(distinct(causes), key=lambda each: -each.cost_seconds)


def _is_of_ordinary_size(cause: RecompileFinding) -> bool:
    """Sizes of 0 and 1 have graphs of their own, whatever is marked."""
    return is_of_size(cause) and {"0", "1"}.isdisjoint((cause.expected, cause.actual))


def _is_helped(finding: Finding) -> bool:
    """Is there something to write?"""
    return any(each.diff for each in finding.advice) or any(
        each.kind == "program" for each in finding.remedy
    )


SECTION = Section("spared", 16, _build, "Could be spared", "no loss: it is reused")
