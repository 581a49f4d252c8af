"""What devices refuse in a program's graphs: as a backend recorded it, or a check of them says."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.remedy import source
from compilescope.record.bodies import ReproWritten, Violation
from compilescope.record.body import FindingKind, Level
from compilescope.record.fingerprint import fingerprint
from compilescope.record.run import Run
from compilescope.record.stack import Frame

_LEVELS: dict[str, Level] = {"error": "error", "warning": "warning"}


class ViolationFinding(Finding, frozen=True, kw_only=True):
    """Something in a graph that a device does not take; `rule` is the constraint."""

    device: str
    op: str
    found: str
    allowed: str
    severity: str
    """`error`, `warning`, or `unknown` where the constraint could not tell."""
    stage: str
    model: str
    """As the backend was told, or the function at which the program entered compiled code."""
    node: str
    """The graph's."""
    graph: str = ""
    """Its compile id, where it is known."""
    repro: str = ""
    """The script that shows it: within the run's folder, or the whole path of one elsewhere."""
    repro_ops: int | None = None
    """Operations in it."""
    no_repro: str = ""
    """Why there is none, where one was to be written."""

    @property
    def kind(self) -> FindingKind:
        return "violation"

    @property
    def rule_id(self) -> str:
        return f"violation/{self.rule}"

    @property
    def title(self) -> str:
        return f"{self.device} refuses {self.op}"

    @property
    def message(self) -> str:
        return f"found {self.found}; {self.device} allows {self.allowed}"

    @property
    def level(self) -> Level:
        return _LEVELS.get(self.severity, "note")


def violations(run: Run) -> list[ViolationFinding]:
    """Every one that a backend recorded, in their order."""
    written = {body.because: body for _, body in run.of(ReproWritten)}
    found = []
    for event, body in run.of(Violation):
        finding = violation(body, event.site, run.header.root)
        repro = written.get(event.id)
        found.append(
            msgspec.structs.replace(
                finding,
                ranks=(event.rank,),
                because=(event.id,),
                graph=event.compile_id or "",
                repro=repro.path if repro else "",
                repro_ops=repro.ops if repro else None,
                no_repro=repro.reason if repro else "",
            )
        )
    return found


def violation(said: Violation, frame: Frame | None, root: str) -> ViolationFinding:
    """As a device says it of the user's line."""
    return ViolationFinding(
        rule=said.rule,
        device=said.device,
        op=said.op,
        found=said.found,
        allowed=said.allowed,
        severity=said.severity,
        stage=said.stage,
        model=said.model,
        node=said.node,
        remedy=(source(said.remedy),) if said.remedy else (),
        file=frame.file if frame else "",
        line=frame.line if frame else 0,
        column=frame.column if frame else None,
        end_column=frame.end_column if frame else None,
        function=frame.function if frame else "",
        source=frame.source if frame else "",
        fingerprint=fingerprint(f"violation {said.device} {said.rule} {said.op}", frame, root),
    )


def each_place_once(found: Iterable[ViolationFinding]) -> list[ViolationFinding]:
    """The same refusal of the same expression, however often: one, with a repro where any has."""
    groups: dict[tuple[object, ...], list[ViolationFinding]] = {}
    for each in found:
        what = (each.model, each.device, each.rule, each.op, each.found, each.severity)
        groups.setdefault((*what, each.file, each.line, each.column), []).append(each)
    return [_joined(same) for same in groups.values()]


def _joined(same: list[ViolationFinding]) -> ViolationFinding:
    shown = next((each for each in same if each.repro), None)
    shown = shown or next((each for each in same if each.no_repro), same[0])
    return msgspec.structs.replace(
        same[0],
        count=len(same),
        ranks=tuple(sorted({rank for each in same for rank in each.ranks})),
        because=tuple(event for each in same for event in each.because),
        repro=shown.repro,
        repro_ops=shown.repro_ops,
        no_repro=shown.no_repro,
    )
