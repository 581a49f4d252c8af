"""The graphs of a run in portable form: Dynamo's, and the backward ones that AOTAutograd made.

The forward pass is judged where its author wrote it, in Dynamo's graph. Only AOTAutograd knows a
backward graph; where a graph needs gradients and none was recorded, that is said.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.analysis.stages.collect import StagedGraph, staged_graphs
from compilescope.analysis.stages.line_links import Family, ReadStage
from compilescope.analysis.stages.reader import StageReader
from compilescope.analysis.stages.tensors import portable_graphs
from compilescope.model.bodies import GraphStage
from compilescope.model.graph import Graph
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef, Frame, origin_of
from compilescope.source.spots import Sources


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
