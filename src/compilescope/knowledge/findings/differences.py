"""Findings of compared backends: values that differ, or for which that could not be told."""

from __future__ import annotations

from compilescope.knowledge.findings.finding import Finding
from compilescope.record.bodies import TensorDiff
from compilescope.record.body import FindingKind, Level
from compilescope.record.fingerprint import fingerprint
from compilescope.record.run import Run


class DifferenceFinding(Finding, frozen=True, kw_only=True):
    """One value; its place is the line of the operation at which they part, where that is known."""

    diff: TensorDiff

    @property
    def kind(self) -> FindingKind:
        return "difference"

    @property
    def rule_id(self) -> str:
        return f"difference/{self.diff.role}"

    @property
    def title(self) -> str:
        model = f"{self.diff.model}: " if self.diff.model else ""
        return f"{model}{self.diff.path}"

    @property
    def message(self) -> str:
        return self.diff.reason

    @property
    def level(self) -> Level:
        return "error" if self.diff.verdict == "fail" else "note"

    @property
    def largest_error(self) -> float:
        """A value without a figure, such as another shape or NaN on one side, is the worst."""
        if self.diff.metrics.get("disagreeing"):
            return float("inf")
        return self.diff.metrics.get("max_abs", float("inf"))


def differences(run: Run) -> list[DifferenceFinding]:
    """What differs, then what could not be told, in their order."""
    found = []
    for event, body in run.of(TensorDiff):
        if body.verdict == "pass":
            continue
        frame = event.stack[-1] if event.stack else None
        name = " ".join(("difference", body.role, body.model, body.test, body.path))
        found.append(
            DifferenceFinding(
                diff=body,
                file=frame.file if frame else "",
                line=frame.line if frame else 0,
                function=frame.function if frame else "",
                source=frame.source if frame else "",
                fingerprint=fingerprint(name, None, run.header.root),
                ranks=(event.rank,),
                because=(event.id,),
            )
        )
    return sorted(found, key=lambda each: each.level != "error")
