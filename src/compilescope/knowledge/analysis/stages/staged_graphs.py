"""Gathers the stages of each captured graph: what Dynamo caught and all that was made of it.

They belong together by process, epoch and compile id; attempts at one frame are one compilation.
"""

from __future__ import annotations

import msgspec

from compilescope.knowledge.analysis.stages.kernels import direction_of
from compilescope.record.bodies import CacheAccess, GraphCaptured, KernelEmitted
from compilescope.record.event import Event
from compilescope.record.run import Run

KERNELS = "kernels"
_DIRECTIONS = {
    "aot_forward": "forward",
    "aot_backward": "backward",
    "aot_inference": "inference",
}
_KINDS = (
    "dynamo", "aot_joint", "aot_inference", "aot_forward", "aot_backward", "post_grad",
    "ir_pre_fusion", "ir_post_fusion", KERNELS,
)  # fmt: skip
_FIRST = ("aot_joint", "aot_inference")
"""Stages with which the work on a graph begins, where Dynamo did not catch it."""


class Stage(msgspec.Struct, eq=False):
    """One graph at one stage, or the code made of it."""

    kind: str
    """As in GraphCaptured, or `kernels`."""
    event: Event
    text: str | None
    """Artifact: its code."""
    origins: str | None = None
    """Artifact: where its nodes or kernels came from."""
    direction: str = ""
    """forward, backward or inference; empty where it is not known."""
    before: Stage | None = None
    """For kernels: the post-grad graph they were made of."""
    after: str | None = None
    """For a post-grad graph: the origins of the kernels made of it, which tell its own too."""
    graph: str | None = None
    """Artifact: the portable graph, where it was made from the live one."""


class StagedGraph(msgspec.Struct, eq=False):
    """A graph with all its stages in the order in which they came."""

    event: Event
    """The first one."""
    body: GraphCaptured | None = None
    """What Dynamo caught; None where the graph came another way, or from before the capture."""
    stages: list[Stage] = msgspec.field(default_factory=list)
    cached: bool = False
    """Some of it was not made in this run but taken from one of torch's caches on disk."""

    def of(self, kind: str) -> list[Stage]:
        return [stage for stage in self.stages if stage.kind == kind]


def staged_graphs(run: Run) -> list[StagedGraph]:
    """Every graph of the run, in the order in which work on it began."""
    graphs: list[StagedGraph] = []
    latest: dict[tuple[object, ...], StagedGraph] = {}

    def begin(event: Event) -> StagedGraph:
        graph = latest[compilation(event)] = StagedGraph(event)
        graphs.append(graph)
        return graph

    def current(event: Event, kind: str) -> StagedGraph:
        graph = latest.get(compilation(event))
        # Without an id of its own, a graph ends where the next one begins.
        again = event.compile_id is None and kind in _FIRST
        if graph is None or (again and (graph.body is None and graph.of(kind))):
            return begin(event)
        return graph

    for event in run.events:
        body = event.body
        if isinstance(body, GraphCaptured):
            graph = begin(event) if body.stage == "dynamo" else current(event, body.stage)
            if body.stage == "dynamo":
                graph.body = body
            direction = _DIRECTIONS.get(body.stage, "")
            graph.stages.append(
                Stage(body.stage, event, body.text, body.origins, direction, graph=body.graph)
            )
        elif isinstance(body, KernelEmitted):
            _add_kernels(current(event, KERNELS), event, body, run)
        elif isinstance(body, CacheAccess) and body.outcome == "hit":
            known = latest.get(compilation(event))
            if known is not None:
                known.cached = True
    return graphs


def compilation(event: Event) -> tuple[object, ...]:
    """The compilation that an event belongs to."""
    if event.compile_id is None:
        return event.pid, event.epoch, None, event.thread
    return event.pid, event.epoch, event.compile_id.split("_")[0]


def _add_kernels(graph: StagedGraph, event: Event, body: KernelEmitted, run: Run) -> None:
    direction: str = body.direction
    if not direction:
        direction = direction_of((run.artifacts.get(body.artifact) or "")[:200])
    before = graph.stages[-1] if graph.stages and graph.stages[-1].kind == "post_grad" else None
    if before is not None:
        before.direction, before.after = direction, body.origins
    graph.stages.append(Stage(KERNELS, event, body.artifact, body.origins, direction, before))


def shown_stages(graph: StagedGraph) -> list[Stage]:
    """The joint graph says nothing that the two cut from it do not say."""
    cut = {stage.kind for stage in graph.stages} >= {"aot_forward", "aot_backward"}
    return [stage for stage in graph.stages if not (cut and stage.kind == "aot_joint")]


def order_stages(stages: list[Stage]) -> list[Stage]:
    """Dynamo's graph, then AOT's, then post-grad, then kernels; forward before backward."""
    return sorted(stages, key=_rank)


def _rank(stage: Stage) -> tuple[int, int]:
    kind = _KINDS.index(stage.kind) if stage.kind in _KINDS else len(_KINDS)
    return kind, stage.direction == "backward"
