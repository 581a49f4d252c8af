"""The guard inspector: compile anew, then say what each call pays to have its guards checked.

print(compilescope.GuardInspector(model).inspect(x))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.objects import call_arguments
from compilescope.base.texts import plain_json
from compilescope.base.version import VERSION
from compilescope.knowledge.analysis.dynamo_graphs import BreakReason, break_reasons, graph_count
from compilescope.knowledge.analysis.guarded_graphs import GuardedGraph, guarded_graphs
from compilescope.record.bodies import GraphCaptured
from compilescope.record.guards import GuardCost, GuardNode
from compilescope.record.header import RunHeader
from compilescope.record.home import new_run_id
from compilescope.record.run import Run
from compilescope.record.stack import Frame, innermost_user_frame
from compilescope.report.guards import MEASURED, captured_words, costliest, inspection_document


class InspectedGraph(msgspec.Struct, frozen=True):
    """One cache entry: its guards, and what checking them costs."""

    graph: GuardedGraph
    cost: GuardCost | None
    """None where it could not be measured."""
    expensive: tuple[GuardNode, ...] = ()
    """The parts of the tree by their own cost, dearest first; their children are left out."""


class GuardReport:
    """What an inspection found."""

    def __init__(
        self,
        name: str,
        backend: str,
        graphs: list[InspectedGraph],
        result: Any,
        break_reasons: Sequence[BreakReason] = (),
        graph_count: int | None = None,
    ) -> None:
        self.name = name
        self.backend = backend
        self.graphs = graphs
        """One for each cache entry, in the order in which they were compiled."""
        self.result = result
        """What the call returned."""
        self.break_reasons = list(break_reasons)
        """Each graph break once, in order of appearance."""
        self.graph_count = len(graphs) if graph_count is None else graph_count
        """Graphs that Dynamo handed to the backend; a frame without operations has none."""

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def guards(self) -> int:
        """Guards of all graphs."""
        return sum(entry.graph.guards for entry in self.graphs)

    @property
    def check_ns(self) -> float | None:
        """One check of all entries with warm caches; None where one was not measured."""
        costs = [entry.cost.warm_ns if entry.cost else None for entry in self.graphs]
        return sum(ns for ns in costs if ns is not None) if None not in costs else None

    def summary(self) -> str:
        """The report as plain text, 80 columns wide."""
        from compilescope.report.render.terminal import to_text

        return to_text(self._document())

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        fields = {
            "name": self.name,
            "backend": self.backend,
            "graph_count": self.graph_count,
            "graph_break_count": self.graph_break_count,
            "break_reasons": self.break_reasons,
            "guards": self.guards,
            "check_ns": self.check_ns,
            "graphs": self.graphs,
            "measured": MEASURED,
        }
        values: dict[str, Any] = msgspec.to_builtins(fields)
        return values

    def to_json(self) -> str:
        return plain_json(self.to_dict())

    def __getitem__(self, key: str) -> Any:
        """`report["graph_count"]`: reports of older tools were dicts."""
        return self.to_dict()[key]

    def _repr_html_(self) -> str:
        from compilescope.report.render.html import to_html

        return to_html(self._document())

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<GuardReport of {self.name}: {len(self.graphs)} frames, {self.guards} guards>"

    def _document(self) -> Any:
        check = self.check_ns
        cost = f", {check / 1000:.1f} us to check them all" if check is not None else ""
        frames = f"{len(self.graphs)} compiled frame{'' if len(self.graphs) == 1 else 's'}"
        captured = captured_words(self.graph_count, self.break_reasons)
        subtitle = f"{captured}, {frames}, {self.guards} guards{cost}; backend {self.backend}"
        entries = [(entry.graph, entry.cost) for entry in self.graphs]
        return inspection_document(
            f"Guards of {self.name}", subtitle, entries, os.getcwd(), self.break_reasons
        )


class GuardInspector:
    """Compiles a model or function anew and measures the guards of what was compiled.

    `options` go to `torch.compile`. The backend matters little here: guards are Dynamo's. What is
    compiled already keeps its own backend and options, unless some are given.

    Every inspection compiles everything anew, as `compilescope.explain` does: compiled code of
    this process is dropped before and after, and other compiled functions compile again when they
    are next called.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        backend: str | Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        self.backend = backend
        self.options = options

    def inspect(self, *inputs: Any, **kwargs: Any) -> GuardReport:
        """Call the model once with these inputs, as `KernelDiffHarness` takes them: one tuple or
        list alone holds the arguments, one dict alone the keyword arguments. (An argument that is
        such a container goes into a tuple: `inspect((batch,))`.)"""
        if len(inputs) == 1:
            inputs, kwargs = call_arguments(inputs[0], kwargs)
        from compilescope.instrument.recorder.journal import MemoryJournal
        from compilescope.instrument.recorder.session import recording
        from compilescope.instrument.torchapi.compilation.fresh import as_compiled, compiled_anew
        from compilescope.instrument.torchapi.guards.cost import measured_guards

        journal = MemoryJournal()
        named = {} if self.backend is None else {"backend": self.backend}
        compiled = as_compiled(self.model, {**named, **self.options})
        with (
            compiled_anew(),
            recording(journal) as recorder,
            measured_guards(recorder.fault) as costs,
        ):
            result = compiled(*inputs, **kwargs)
        run = Run(_header(), journal.events, journal.artifacts)
        graphs = guarded_graphs(run)
        if not graphs:
            raise ToolError(
                f"Nothing in {_name(self.model)} was compiled, so there are no guards.",
                hint="print(compilescope.explain(model)(*inputs).summary()) shows why.",
            )
        by_id = {cost.compile_id: cost for cost in costs}
        order = {event.compile_id: number for number, event in enumerate(journal.events)}
        graphs.sort(key=lambda graph: order.get(graph.compile_id, 0))
        entries = [_inspected(graph, by_id.get(graph.compile_id)) for graph in graphs]
        return GuardReport(
            _name(self.model), _backend(run), entries, result, break_reasons(run), graph_count(run)
        )


def _backend(run: Run) -> str:
    """As the graphs tell: what was compiled before has its own."""
    names = (body.backend for _, body in run.of(GraphCaptured) if body.stage == "dynamo")
    return ", ".join(dict.fromkeys(name for name in names if name)) or "unknown"


def _inspected(graph: GuardedGraph, cost: GuardCost | None) -> InspectedGraph:
    if cost is None:
        return InspectedGraph(graph, None)
    frames: dict[str, Frame] = {}
    for guard in graph.all:
        frame = innermost_user_frame(guard.stack)
        if frame is not None:
            frames.setdefault(guard.source, frame)
    cost = msgspec.structs.replace(cost, tree=_with_frames(cost.tree, frames))
    expensive = tuple(msgspec.structs.replace(node, children=()) for node in costliest(cost))
    return InspectedGraph(graph, cost, expensive)


def _with_frames(node: GuardNode, frames: dict[str, Frame]) -> GuardNode:
    children = tuple(_with_frames(child, frames) for child in node.children)
    return msgspec.structs.replace(node, frame=frames.get(node.source), children=children)


def _name(thing: Any) -> str:
    if isinstance(thing, str):
        return thing
    return getattr(thing, "__name__", None) or type(thing).__name__


def _header() -> RunHeader:
    return RunHeader(run=new_run_id("guards"), tool=VERSION, cwd=os.getcwd(), root=os.getcwd())
