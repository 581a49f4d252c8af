"""What devices refused while a program ran: each violation that a backend recorded."""

from __future__ import annotations

import msgspec

from compilescope.model.bodies import ReproWritten, Violation
from compilescope.model.run import Run


class RecordedViolation(msgspec.Struct, frozen=True, kw_only=True):
    """One violation."""

    rule: str
    device: str
    op: str
    file: str
    line: int
    function: str
    source: str
    found: str
    allowed: str
    remedy: str
    severity: str
    stage: str
    model: str
    node: str
    rank: int
    repro: str = ""
    """The script that shows it: within the run's folder, or the whole path of one elsewhere."""
    no_repro: str = ""
    """Why there is none, where one was to be written."""


def repros_by_event(run: Run) -> dict[str, ReproWritten]:
    """Id of a violation's event -> what became of its repro."""
    return {body.because: body for _, body in run.of(ReproWritten)}


def recorded_violations(run: Run) -> list[RecordedViolation]:
    """In the order in which they were found."""
    found = []
    written = repros_by_event(run)
    for event, body in run.of(Violation):
        site = event.site
        repro = written.get(event.id)
        found.append(
            RecordedViolation(
                rule=body.rule,
                device=body.device,
                op=body.op,
                file=site.file if site else "",
                line=site.line if site else 0,
                function=site.function if site else "",
                source=site.source.strip() if site else "",
                found=body.found,
                allowed=body.allowed,
                remedy=body.remedy,
                severity=body.severity,
                stage=body.stage,
                model=body.model,
                node=body.node,
                rank=event.rank,
                repro=repro.path if repro else "",
                no_repro=repro.reason if repro else "",
            )
        )
    return found
