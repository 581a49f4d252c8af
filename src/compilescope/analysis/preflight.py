"""Would what a run compiled go onto a device? Every graph against every device, in one pass.

Pure: it reads recorded graphs. What the graphs do not hold (code that ran eagerly, a backward pass
that nobody recorded) is named as not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from compilescope.analysis.digest import Digest
from compilescope.analysis.recorded_graphs import NotChecked, RecordedGraph, recorded_graphs
from compilescope.findings.violations import ViolationFinding, violation
from compilescope.model.bodies import Violation
from compilescope.model.device import Device
from compilescope.model.run import Run
from compilescope.model.stack import place_of
from compilescope.rules.hardware.checks import check_graph, constraints_of
from compilescope.rules.hardware.constraint import Constraint
from compilescope.rules.hardware.memory import Peak, peak_memory


class DeviceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one device says to the graphs of a run."""

    device: str
    title: str
    violations: tuple[ViolationFinding, ...]
    unknown: tuple[ViolationFinding, ...]
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
    return [_report(device, graphs, missing, run.header.root) for device in devices]


def _report(
    device: Device, graphs: Sequence[RecordedGraph], missing: tuple[NotChecked, ...], root: str
) -> DeviceReport:
    constraints = constraints_of(device)
    found: list[ViolationFinding] = []
    ops = refused = 0
    for staged in graphs:
        breaches = list(_check(staged, device, constraints, root))
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
        peak_at=place_of(frame.file, frame.line) if frame else "",
    )


def _bytes(peak: Peak) -> int:
    return peak.peak_bytes


def _check(
    staged: RecordedGraph, device: Device, constraints: Sequence[Constraint], root: str
) -> Iterator[ViolationFinding]:
    for breach in check_graph(staged.graph, constraints, called_at=staged.called_at):
        said = Violation(
            rule=breach.rule,
            device=device.name,
            op=breach.op,
            found=breach.found,
            allowed=breach.allowed,
            severity=breach.severity,
            remedy=breach.remedy,
            stage=staged.stage,
            model=staged.model,
            node=breach.node,
        )
        found = violation(said, breach.frame, root)
        yield msgspec.structs.replace(found, graph=staged.compile_id)


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
