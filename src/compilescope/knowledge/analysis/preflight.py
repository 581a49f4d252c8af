"""Would what a run compiled go onto a device? Every graph against every device, in one pass.

Pure: it reads recorded graphs. What the graphs do not hold (code that ran eagerly, a backward pass
that nobody recorded) is named as not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.stages.line_links import Family, ReadStage
from compilescope.knowledge.analysis.stages.printed_graph import portable_graphs
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import StagedGraph, staged_graphs
from compilescope.knowledge.findings.violations import ViolationFinding, violation
from compilescope.knowledge.rules.hardware.checks import check_graph, constraints_of
from compilescope.knowledge.rules.hardware.constraint import Constraint
from compilescope.knowledge.rules.hardware.memory import Peak, peak_memory
from compilescope.knowledge.source.spots import Sources
from compilescope.record.bodies import GraphStage, Violation
from compilescope.record.device import Device
from compilescope.record.graph import Graph
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of, place_of


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


# The graphs of a run in portable form: Dynamo's, and the backward ones that AOTAutograd made.
#
# The forward pass is judged where its author wrote it, in Dynamo's graph. Only AOTAutograd knows a
# backward graph; where a graph needs gradients and none was recorded, that is said.


class NotChecked(msgspec.Struct, frozen=True, kw_only=True):
    """Code that no graph holds."""

    what: str
    file: str
    line: int
    why: str


class RecordedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph as it was recorded, at one stage."""

    stage: GraphStage
    graph: Graph
    compile_id: str
    model: str
    """The function at which the program entered compiled code."""
    called_at: Frame | None
    """The line that called it."""


def recorded_graphs(run: Run) -> tuple[list[RecordedGraph], list[NotChecked]]:
    """The graphs, and what of them could not be read."""
    reader = StageReader(run, Sources(run))
    found: list[RecordedGraph] = []
    missing: list[NotChecked] = []
    for staged in staged_graphs(run):
        caught = reader.caught(staged)
        code = staged.body.frame if staged.body is not None else None
        if caught is None:
            missing.append(_missing(code, "the graph", "the recording doesn't contain it"))
            continue
        found.append(_recorded("dynamo", caught, staged))
        backward = list(_backward(staged, caught, reader))
        found += backward
        if not backward and _trains(caught):
            why = "no backward graph was recorded; a backend that uses AOTAutograd produces one"
            missing.append(_missing(code, "the backward pass", why))
    return found, missing


def _recorded(stage: GraphStage, graph: Graph, staged: StagedGraph) -> RecordedGraph:
    body = staged.body
    code = (body.region or body.frame) if body is not None else None
    return RecordedGraph(
        stage=stage,
        graph=graph,
        compile_id=staged.event.compile_id or "",
        model=code.function if code else "",
        called_at=staged.event.site,
    )


def _backward(staged: StagedGraph, caught: Graph, reader: StageReader) -> Iterator[RecordedGraph]:
    stages = staged.of("aot_backward")
    if not stages:
        return
    family = reader.family(staged, [*staged.of("dynamo"), *staged.of("aot_joint"), *stages])
    for read in family.stages:
        if read.stage.kind == "aot_backward" and read.printed.nodes:
            lines = _lines(read, family, caught)
            graph = reader.portable(read.stage.graph) or portable_graphs(read.printed)[0]
            nodes = (
                msgspec.structs.replace(node, frame=lines.get(node.name) or node.frame)
                for node in graph.nodes
            )
            yield _recorded("aot_backward", Graph(tuple(nodes)), staged)


def _lines(read: ReadStage, family: Family, caught: Graph) -> dict[str, Frame]:
    """Node of the backward graph -> the line of the forward node that it is for."""
    frames = {node.name: node.frame for node in caught.nodes}
    first = family.first.printed.nodes
    lines: dict[str, Frame] = {}
    for node, numbers in zip(read.printed.nodes, read.nodes, strict=False):
        own = (frames.get(first[number - 1].name) for number in numbers)
        frame = next((found for found in own if found is not None), None)
        if frame is None and node.place is not None:
            frame = Frame(node.place[0], node.place[1], "", origin=origin_of(node.place[0]))
        if frame is not None:
            lines[node.name] = frame
    return lines


def _trains(caught: Graph) -> bool:
    """Does anything that it computes need a gradient?"""
    computed = (node for node in caught.nodes if node.op.startswith("call_"))
    return any(value.requires_grad for node in computed for value in node.outputs)


def _missing(code: CodeRef | None, what: str, why: str) -> NotChecked:
    name = f"{what} of {code.function}" if code else what
    return NotChecked(
        what=name, file=code.file if code else "", line=code.line if code else 0, why=why
    )
