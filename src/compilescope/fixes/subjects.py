"""Which findings of a run a fix can be sought for: breaks, recompiles, failed compilations."""

from __future__ import annotations

from compilescope.analysis.findings import findings
from compilescope.findings.breaks import BreakFinding
from compilescope.fixes.subject import Program, Subject


def subjects_of(program: Program) -> list[Subject]:
    """One for each cause, ranked as the digest ranks them. What an earlier break only left behind
    goes with that one, so it is none of its own."""
    return [
        Subject(finding, program)
        for finding in findings(program.digest)
        if finding.kind != "eager"
        and not (isinstance(finding, BreakFinding) and finding.consequence_of is not None)
    ]
