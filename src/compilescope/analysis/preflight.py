"""Would what a run compiled go onto a device? Every graph against every device, in one pass.

Pure: it reads recorded graphs. What the graphs do not hold (code that ran eagerly, a backward pass
that nobody recorded) is named as not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from compilescope.analysis.digest import Digest
from compilescope.analysis.recorded_graphs import NotChecked, RecordedGraph, recorded_graphs
from compilescope.model.device import Device
from compilescope.model.run import Run
from compilescope.model.stack import Frame
from compilescope.rules.hardware.checks import check_graph, constraints_of
from compilescope.rules.hardware.constraint import Breach, Constraint
from compilescope.rules.hardware.memory import Peak, peak_memory


class PreflightViolation(msgspec.Struct, frozen=True, kw_only=True):
    """One node of one graph that a device refuses, or cannot be judged."""

    rule: str
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
    graph: str
    """The compile id."""
    model: str
    """The function at which the program entered compiled code."""
    node: str


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """One device."""

    device: str
    title: str
    violations: tuple[PreflightViolation, ...]
    unknown: tuple[PreflightViolation, ...]
    """What could not be told."""
    not_checked: tuple[NotChecked, ...]
    graphs: int
    ops: int
    coverage: float | None
    """Percent of the operations that the device takes for sure; None without any."""
    peak_bytes: int | None
    """Of the graph that needs most."""
    peak_at: str
    """The line at which that is, as file:line."""

    @property
    def errors(self) -> int:
        return sum(violation.severity == "error" for violation in self.violations)

    @property
    def warnings(self) -> int:
        return sum(violation.severity == "warning" for violation in self.violations)


def preflight(run: Run, seen: Digest, devices: Iterable[Device]) -> list[DeviceReport]:
    """Every graph that was recorded, against each device."""
    graphs, unread = recorded_graphs(run)
    missing = (*unread, *_eager(seen))
    return [_report(device, graphs, missing) for device in devices]


def _report(
    device: Device, graphs: Sequence[RecordedGraph], missing: tuple[NotChecked, ...]
) -> DeviceReport:
    constraints = constraints_of(device)
    found: list[PreflightViolation] = []
    ops = refused = 0
    for staged in graphs:
        breaches = list(_check(staged, constraints))
        found += breaches
        ops += staged.graph.ops
        computing = {node.name for node in staged.graph.nodes if node.op.startswith("call_")}
        doubtful = {b.node for b in breaches if b.severity in ("error", "unknown")}
        refused += len(doubtful & computing)
    worst = max((peak_memory(staged.graph) for staged in graphs), key=_bytes, default=None)
    frame = worst.frame if worst else None
    return DeviceReport(
        device=device.name,
        title=device.title,
        violations=tuple(v for v in found if v.severity != "unknown"),
        unknown=tuple(v for v in found if v.severity == "unknown"),
        not_checked=missing,
        graphs=len(graphs),
        ops=ops,
        coverage=round(100 * (ops - refused) / ops, 2) if ops else None,
        peak_bytes=worst.peak_bytes if worst else None,
        peak_at=f"{frame.file}:{frame.line}" if frame else "",
    )


def _bytes(peak: Peak) -> int:
    return peak.peak_bytes


def _check(
    staged: RecordedGraph, constraints: Sequence[Constraint]
) -> Iterator[PreflightViolation]:
    for breach in check_graph(staged.graph, constraints, called_at=staged.called_at):
        yield _violation(breach, staged)


def _violation(breach: Breach, staged: RecordedGraph) -> PreflightViolation:
    frame = breach.frame or Frame("", 0, "")
    return PreflightViolation(
        rule=breach.rule,
        op=breach.op,
        file=frame.file,
        line=frame.line,
        function=frame.function,
        source=frame.source.strip(),
        found=breach.found,
        allowed=breach.allowed,
        remedy=breach.remedy,
        severity=breach.severity,
        stage=staged.stage,
        graph=staged.compile_id,
        model=staged.model,
        node=breach.node,
    )


def _eager(seen: Digest) -> Iterator[NotChecked]:
    """What a graph break hides."""
    for frame in seen.eager_frames:
        part = "the rest of " if frame.rest_only else ""
        yield NotChecked(
            what=f"{part}{frame.function}",
            file=frame.file,
            line=frame.line,
            why=f"it ran eagerly: {frame.reason}",
        )
    for skip in seen.unexplained_skips:
        yield NotChecked(what=skip.function, file=skip.file, line=skip.line, why="torch skipped it")
    for site in seen.sites:
        if not site.gave_up:
            yield NotChecked(
                what=f"the expression that breaks in {site.function}",
                file=site.file,
                line=site.line,
                why=f"it ran between two graphs: {site.gb_type}",
            )
    for failure in seen.failures:
        yield NotChecked(
            what=failure.function or "a function",
            file=failure.file,
            line=failure.line,
            why=f"its compilation failed: {failure.error}",
        )
