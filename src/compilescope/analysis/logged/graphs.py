"""The graphs of a logged run, each with its reason.

Where an XLA compiler wrote into the log, its graphs are counted; else Dynamo's own.
"""

from __future__ import annotations

from compilescope.analysis.logged.callers import asked_by, in_module
from compilescope.analysis.logged.graph import LoggedGraph, Reason
from compilescope.analysis.logged.process import ProcessLog
from compilescope.analysis.logged.reasons import GraphReasons
from compilescope.findings.compile_ids import Process, process_of, without_attempt
from compilescope.model import bodies
from compilescope.model.event import Event
from compilescope.model.logged import GraphCompiled
from compilescope.model.run import Run
from compilescope.model.stack import Frame
from compilescope.source.spots import Sources


def logged_graphs(run: Run, sources: Sources | None = None) -> list[LoggedGraph]:
    """In order of appearance, rank by rank."""
    sources = sources or Sources(run)
    processes: dict[Process, list[Event]] = {}
    for event in run.events:
        processes.setdefault(process_of(event), []).append(event)
    by_compiler = any(isinstance(event.body, GraphCompiled) for event in run.events)
    found: list[LoggedGraph] = []
    for events in processes.values():
        reasons = GraphReasons(ProcessLog(events))
        for event in events:
            body = event.body
            if by_compiler and isinstance(body, GraphCompiled):
                found.append(_compiled(event, body, reasons.of_compiled(event, body), sources))
            elif by_compiler or not isinstance(body, bodies.GraphCaptured):
                continue
            elif body.stage == "dynamo":
                found.append(_captured(event, body, reasons.of_captured(event, body)))
    return found


def expected_graphs(run: Run, graphs: list[LoggedGraph]) -> int:
    """As many as there would be without breaks, recompiles and reads: one a compiled function.

    Where nothing was compiled by Dynamo, one for each line that syncs, outside the model.
    """
    regions = {
        (process_of(event), body.region)
        for event, body in run.of(bodies.GraphCaptured)
        if body.stage == "dynamo" and body.region is not None
    }
    compiling = {
        process_of(event) for event, body in run.of(bodies.GraphCaptured) if body.stage == "dynamo"
    }
    given_up = {
        (process_of(event), body.frame)
        for event, body in run.of(bodies.FrameSkipped)
        if body.cause not in ("harmless", "unexplained")
        and not body.frame.resumed
        and process_of(event) not in compiling
    }
    backward = 1 if any(graph.kind == "backward" for graph in graphs) else 0
    if regions or given_up:
        return len(regions | given_up) * (1 + backward)
    begun = sum(graph.kind == "region" for graph in graphs)
    return begun or len(_step_ends(run, graphs)) or min(1, len(graphs))


def _step_ends(run: Run, graphs: list[LoggedGraph]) -> set[tuple[int, Frame | None]]:
    """The lines that end a step, rank by rank."""
    syncs = {graph.event: graph for graph in graphs if graph.kind == "sync"}
    return {
        (event.rank, syncs[event.id].place)
        for event in run.events
        if event.id in syncs and not in_module(event.stack)
    }


def _compiled(event: Event, body: GraphCompiled, reason: Reason, sources: Sources) -> LoggedGraph:
    whole = [stage.ops for stage in body.stages if stage.ops is not None]
    place, through = _place(event, body, reason, sources)
    return LoggedGraph(
        event=event.id,
        name=body.name or body.hash,
        rank=event.rank,
        kind=reason.kind,
        words=reason.words,
        because=reason.because,
        stages=body.stages,
        ops=whole[0] if whole else None,
        place=place,
        through=through,
        error=body.error,
        failed_stage=body.failed_stage,
        cut=body.cut,
    )


def _captured(event: Event, body: bodies.GraphCaptured, reason: Reason) -> LoggedGraph:
    code = body.frame
    place = event.site
    if place is None and code is not None:
        place = Frame(code.file, code.resumed_at or code.line, code.function)
    return LoggedGraph(
        event=event.id,
        name=without_attempt(event.compile_id) if event.compile_id else "",
        rank=event.rank,
        kind=reason.kind,
        words=reason.words,
        because=reason.because,
        stages=(),
        ops=body.ops,
        place=place,
    )


def _place(
    event: Event, body: GraphCompiled, reason: Reason, sources: Sources
) -> tuple[Frame | None, tuple[Frame, ...]]:
    for place in body.places:
        if place.frame.origin in ("user", "library"):
            return place.frame, ()
    # The bridge's own frames say how it came to be compiled, not what it is.
    return asked_by(event.stack, sources, through_helpers=reason.kind == "sync")
