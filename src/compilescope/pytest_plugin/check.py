"""`--compilescope-check`: the whole session, held against its project's limits and baseline."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from compilescope.analysis.gate.baseline import FILE_NAME, Baseline, read_baseline
from compilescope.analysis.gate.verdict import (
    GateLimits,
    Judgement,
    complete,
    judge,
    project_limits,
)
from compilescope.project import read_project
from compilescope.report.blocks import Block, Heading
from compilescope.report.document import record_of
from compilescope.report.gate import GateTerms, gate_document
from compilescope.report.section import Reading


@dataclass(frozen=True)
class Gate:
    """What a project asks of its tests."""

    limits: GateLimits
    own: bool
    baseline: Baseline | None
    baseline_file: Path | None
    project: Path | None
    """The pyproject.toml that the limits stand in."""

    @property
    def timed(self) -> bool:
        return self.limits.coverage is not None


@dataclass(frozen=True)
class GateResult:
    """What came of it."""

    passed: bool
    reason: str
    """In one line, and why."""
    blocks: tuple[Block, ...] = ()


def read_gate(root: Path) -> Gate:
    """ToolError where pyproject.toml or the baseline makes no sense."""
    project = read_project(root)
    file = project.baseline
    if file is None and (root / FILE_NAME).is_file():
        file = root / FILE_NAME
    baseline = read_baseline(file) if file is not None else None
    limits = project_limits(project)
    return Gate(
        limits=complete(limits, with_baseline=baseline is not None),
        own=bool(project.own),
        baseline=baseline,
        baseline_file=file,
        project=project.file if limits.given else None,
    )


def check_run(reading: Reading, gate: Gate, home: Path | None) -> GateResult:
    """`home` is where the run lives, unless that is the usual place."""
    accepted = gate.baseline.findings if gate.baseline is not None else None
    judged = judge(reading.digest, gate.limits, baseline=accepted, own=gate.own)
    again = ["compilescope", "check", "--run", reading.digest.run]
    if home is not None:
        again += ["--dir", str(home)]
    terms = GateTerms(
        own=gate.own,
        baseline=str(gate.baseline_file or ""),
        baseline_torch=gate.baseline.torch if gate.baseline is not None else None,
        project=str(gate.project or ""),
        accept=shlex.join([*again, "--update-baseline"]),
    )
    document = gate_document(judged, terms, root=reading.root, record=record_of(reading))
    blocks: list[Block] = [Heading("Check")]
    for part in document.parts:
        blocks += [Heading(part.title, part.note)] if part.title else []
        blocks += part.blocks
    return GateResult(judged.outcome == "pass", _reason(judged), tuple(blocks))


def _reason(judged: Judgement) -> str:
    outcome = {"pass": "passed", "fail": "failed", "unknown": "inconclusive"}[judged.outcome]
    told = [check for check in judged.checks if check.outcome == judged.outcome]
    if judged.outcome == "unknown":
        told = list(judged.unsure)
    return f"Check {outcome}: {'; '.join(check.message for check in told)}."
