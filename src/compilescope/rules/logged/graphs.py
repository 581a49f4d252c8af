"""The graphs of a logged run, each with its reason.

Where an XLA compiler wrote into the log, its graphs are counted; else Dynamo's own.
"""

from __future__ import annotations

from compilescope.model import bodies
from compilescope.model.event import Event
from compilescope.model.logged import GraphCompiled
from compilescope.model.run import Run
from compilescope.model.stack import Frame
from compilescope.rules.compile_ids import Process, process_of, without_attempt
from compilescope.rules.logged.graph import LoggedGraph, Reason
from compilescope.rules.logged.process import ProcessLog
from compilescope.rules.logged.reasons import GraphReasons


def logged_graphs(run: Run) -> list[LoggedGraph]:
    """In order of appearance, rank by rank."""
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
                found.append(_compiled(event, body, reasons.of_compiled(event, body)))
            elif by_compiler or not isinstance(body, bodies.GraphCaptured):
                continue
            elif body.stage == "dynamo":
                found.append(_captured(event, body, reasons.of_captured(event, body)))
    return found


def expected_graphs(run: Run, graphs: list[LoggedGraph]) -> int:
    """As many as there would be without breaks, recompiles and reads: one a compiled function.

    Where nothing was compiled by Dynamo, one for each line that syncs.
    """
    regions = {
        (process_of(event), body.region)
        for event, body in run.of(bodies.GraphCaptured)
        if body.stage == "dynamo" and body.region is not None
    }
    compiling = {process for process, _ in regions}
    given_up = {
        (process_of(event), body.frame)
        for event, body in run.of(bodies.FrameSkipped)
        if body.because is not None and process_of(event) not in compiling
    }
    backward = 1 if any(graph.kind == "backward" for graph in graphs) else 0
    if regions or given_up:
        return len(regions | given_up) * (1 + backward)
    begun = sum(graph.kind == "region" for graph in graphs)
    syncs = {(graph.rank, graph.place) for graph in graphs if graph.kind == "sync"}
    return begun or len(syncs) or min(1, len(graphs))


def _compiled(event: Event, body: GraphCompiled, reason: Reason) -> LoggedGraph:
    whole = [stage.ops for stage in body.stages if stage.ops is not None]
    return LoggedGraph(
        event=event.id,
        name=body.name or body.hash,
        rank=event.rank,
        kind=reason.kind,
        words=reason.words,
        because=reason.because,
        stages=body.stages,
        ops=whole[0] if whole else None,
        place=_place(event, body),
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


def _place(event: Event, body: GraphCompiled) -> Frame | None:
    for place in body.places:
        if place.frame.origin in ("user", "library"):
            return place.frame
    site = event.site
    # The bridge's own frames say how it came to be compiled, not what it is.
    return site if site is not None and site.origin == "user" else None
