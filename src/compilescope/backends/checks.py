"""Checks a live graph: makes it portable, finds its operators, and asks the constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from torch.fx import GraphModule

from compilescope.instrument.torchapi.compilation.current import current_compile_id, current_model
from compilescope.instrument.torchapi.graphs.described_graph import judged_graph
from compilescope.instrument.torchapi.graphs.values import with_values
from compilescope.instrument.torchapi.sinks import Sink, active_sinks
from compilescope.instrument.torchapi.stacks import callers
from compilescope.knowledge.rules.constraints.memory import MemoryConstraint
from compilescope.knowledge.rules.hardware.checks import check_graph
from compilescope.knowledge.rules.hardware.constraint import Breach, Constraint, Severity
from compilescope.record.bodies import DeviceChecked, GraphStage, Violation
from compilescope.record.graph import Graph
from compilescope.record.stack import Frame


class ConstraintViolation(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a graph that a device does not take, or of which nobody can tell."""

    rule: str
    op: str
    file: str = ""
    line: int | None = None
    function: str = ""
    source: str = ""
    """The text of the user's line."""
    found: str
    allowed: str
    remedy: str = ""
    severity: Severity = "error"
    stage: GraphStage = "dynamo"
    device: str = ""
    model: str = ""
    node: str = ""
    stack: tuple[Frame, ...] = ()
    """The calls that led there, outermost first."""


class CheckedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph and all that the constraints say of it."""

    stage: GraphStage
    device: str
    model: str
    found: tuple[ConstraintViolation, ...]
    asked: bool = True
    """Was there a constraint to ask?"""

    @property
    def errors(self) -> tuple[ConstraintViolation, ...]:
        return self._of("error")

    @property
    def warnings(self) -> tuple[ConstraintViolation, ...]:
        return self._of("warning")

    @property
    def unknown(self) -> tuple[ConstraintViolation, ...]:
        """What could not be judged."""
        return self._of("unknown")

    def _of(self, severity: Severity) -> tuple[ConstraintViolation, ...]:
        return tuple(each for each in self.found if each.severity == severity)


def graph_of(
    module: GraphModule, constraints: Sequence[Constraint], inputs: Sequence[Any] | None = None
) -> Graph:
    """The portable graph, with all that these constraints look at."""
    return judged_graph(
        with_values(module, inputs),
        operators=bool(constraints),
        memory=any(isinstance(each, MemoryConstraint) for each in constraints),
    )


def check_module(
    module: GraphModule,
    constraints: Sequence[Constraint],
    *,
    inputs: Sequence[Any] | None = None,
    stage: GraphStage = "dynamo",
    device: str = "",
) -> CheckedGraph:
    """Check a live graph. `inputs` are for one that says nothing of its values."""
    return check_portable(graph_of(module, constraints, inputs), constraints, stage, device)


def check_portable(
    graph: Graph, constraints: Sequence[Constraint], stage: GraphStage, device: str
) -> CheckedGraph:
    above = callers()
    breaches = check_graph(graph, constraints, called_at=above[-1] if above else None)
    model = current_model()
    stacks = _Stacks(graph, above)
    return CheckedGraph(
        stage=stage,
        device=device,
        model=model,
        found=tuple(_violation(each, stage, device, model, stacks.of(each)) for each in breaches),
        asked=bool(constraints),
    )


class CapturedViolation(NamedTuple):
    """A violation in the record of one capture."""

    violation: ConstraintViolation
    sink: Sink
    event: str
    """Its id there."""


def tell_captures(checked: CheckedGraph) -> list[CapturedViolation]:
    """Put what was found, and that it was looked for, into the record of whoever captures now."""
    told = []
    sinks = active_sinks()
    compile_id = current_compile_id() if sinks else None
    for sink in sinks:
        if checked.device and checked.asked:
            sink.emit(_outcome(checked), (), compile_id)
        for each in checked.found:
            body = Violation(
                rule=each.rule,
                device=each.device,
                op=each.op,
                found=each.found,
                allowed=each.allowed,
                severity=each.severity,
                remedy=each.remedy,
                stage=each.stage,
                model=each.model,
                node=each.node,
            )
            event = sink.emit(body, each.stack, compile_id, sources=each.stack[-1:])
            told.append(CapturedViolation(each, sink, event))
    return told


def _outcome(checked: CheckedGraph) -> DeviceChecked:
    return DeviceChecked(
        device=checked.device,
        outcome="fail" if checked.errors else "unknown" if checked.unknown else "pass",
        errors=len(checked.errors),
        warnings=len(checked.warnings),
        unknown=len(checked.unknown),
        model=checked.model,
    )


class _Stacks:
    """The calls that led to a node."""

    def __init__(self, graph: Graph, above: Sequence[Frame]) -> None:
        self._above = tuple(above)
        self._by_node = dict(self._of_graph(graph))

    def _of_graph(self, graph: Graph) -> Iterator[tuple[str, tuple[Frame, ...]]]:
        for node in graph.nodes:
            for inner in node.graphs:
                yield from self._of_graph(inner)
            if node.stack is not None:
                yield node.name, graph.stacks[node.stack]

    def of(self, breach: Breach) -> tuple[Frame, ...]:
        frame = breach.frame
        if frame is None or frame in self._above[-1:]:
            return self._above
        traced = self._by_node.get(breach.node, ())
        if traced[-1:] != (frame,):
            # An input is shown at the line that uses it, not at the one that it was taken from.
            traced = (frame,)
        above = self._above
        if above and (above[-1].file, above[-1].function) == (traced[0].file, traced[0].function):
            above = above[:-1]  # The rest of a function, after a graph break: still one call.
        return (*above, *traced)


def _violation(
    breach: Breach, stage: GraphStage, device: str, model: str, stack: tuple[Frame, ...]
) -> ConstraintViolation:
    frame = breach.frame
    return ConstraintViolation(
        rule=breach.rule,
        op=breach.op,
        file=frame.file if frame else "",
        line=frame.line if frame else None,
        function=frame.function if frame else "",
        source=frame.source.strip() if frame else "",
        found=breach.found,
        allowed=breach.allowed,
        remedy=breach.remedy,
        severity=breach.severity,
        stage=stage,
        device=device,
        model=model,
        node=breach.node,
        stack=stack,
    )
