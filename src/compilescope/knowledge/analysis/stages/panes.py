"""The stages of one graph: as lines to show side by side, each with those it is linked to, and in
figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.stages.kernels import KernelLine
from compilescope.knowledge.analysis.stages.line_links import Numbers, ReadStage
from compilescope.knowledge.analysis.stages.printed_graph import portable_graphs
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.source import source_lines
from compilescope.knowledge.analysis.stages.staged_graphs import KERNELS, Stage, StagedGraph
from compilescope.record.graph import Graph
from compilescope.record.graphs.statistics import Amount, GraphStatistics, graph_statistics

_TITLES = {
    "dynamo": "Dynamo graph",
    "aot_joint": "AOT joint graph",
    "aot_forward": "AOT forward graph",
    "aot_backward": "AOT backward graph",
    "aot_inference": "AOT graph",
    "post_grad": "Post-grad {}graph",
    "ir_pre_fusion": "IR before fusion",
    "ir_post_fusion": "IR after fusion",
    KERNELS: "Kernels {}",
}
_BUFFERS = late(r"\s*\w+ = (?:empty_strided\w*\(|reinterpret_tensor\(|\w+; ?del \w+)")
"""Lines of output code that allocate a buffer or give one another name or shape."""
_CLOSING = (")", "]")
"""Lines that end a list of outputs with a line each."""


class StageLine(msgspec.Struct, frozen=True, gc=False):
    """A line to show."""

    text: str
    kin: Numbers = ()
    number: int | None = None
    part: str = ""
    """For a line that computes nothing: what it is one of, such as `inputs`."""


class StagePane(msgspec.Struct, frozen=True):
    """One stage to show."""

    title: str
    lines: tuple[StageLine, ...]
    note: str = ""


def stage_panes(
    graph: StagedGraph,
    stages: Iterable[Stage],
    reader: StageReader,
    name: Callable[[str], str] = str,
) -> list[StagePane]:
    """The user's source, then the stages in order. `name` is how a file is called."""
    family = reader.family(graph, stages)
    source = source_lines(family, reader.caught(graph), reader.functions, name)
    panes = [StagePane("Your source", tuple(StageLine(s.text, s.kin, s.number) for s in source))]
    for index, read in enumerate(family.stages):
        panes.append(_pane(read, family.stages[:index], reader))
    return [pane for pane in panes if pane.lines or pane.note]


def stage_title(stage: Stage) -> str:
    direction = stage.direction if stage.direction in ("forward", "backward") else ""
    title = _TITLES.get(stage.kind, stage.kind)
    return title.format(f"{direction} " if direction else "").strip()


def _pane(read: ReadStage, earlier: list[ReadStage], reader: StageReader) -> StagePane:
    title = stage_title(read.stage)
    if read.code is not None:
        lines = tuple(_kernel_line(line, read.blocks) for line in read.code.lines)
        return StagePane(title, lines, _left_out(read))
    if read.stage.kind.startswith("ir_"):
        text = reader.text(read.stage)
        return StagePane(title, tuple(StageLine(line) for line in text.splitlines() if line))
    twin = next((other for other in earlier if _is_same(other, read)), None)
    if twin is not None:
        return StagePane(title, (), f"Unchanged: same as {stage_title(twin.stage)}")
    return StagePane(title, tuple(_printed_lines(read)))


def _kernel_line(line: KernelLine, blocks: list[Numbers]) -> StageLine:
    if line.block is not None:
        return StageLine(line.text, blocks[line.block])
    return StageLine(line.text, part="buffer assignments" if _BUFFERS.match(line.text) else "")


def _printed_lines(read: ReadStage) -> list[StageLine]:
    """A comment is kin to all that it stands above."""
    shown: list[StageLine] = []
    below: set[int] = set()
    returned = False
    for line in reversed(read.printed.lines):
        kin: Numbers = ()
        bare = line.text.strip()
        # Read from the end: a list of outputs begins where its bracket closes.
        inside = returned and line.node is None and not bare.startswith("return ")
        returned = inside or bare in _CLOSING
        part = "outputs" if inside else ""
        if line.node is not None:
            if read.printed.nodes[line.node].op == "placeholder":
                part = "inputs"
            kin = read.nodes[line.node]
            if read.printed.nodes[line.node].place is None:
                below.clear()
            else:
                below.update(kin)
        elif line.place is not None:
            kin, below = tuple(sorted(below)), set()
        shown.append(StageLine(line.text, kin, part=part))
    return shown[::-1]


def _is_same(one: ReadStage, other: ReadStage) -> bool:
    """Do two stages have the same operations, whatever stands above them?"""
    if other.stage.kind != "post_grad" or not one.stage.kind.startswith("aot_"):
        return False
    return _operations(one) == _operations(other)


def _operations(read: ReadStage) -> list[tuple[str, str, str]]:
    return [
        (node.name, node.target, node.arguments)
        for node in read.printed.nodes
        if node.op != "placeholder"
    ]


def _left_out(read: ReadStage) -> str:
    assert read.code is not None
    parts = [f"{lines} ({what})" for what, lines in read.code.left_out.items()]
    return f"Lines omitted: {', '.join(parts)}" if parts else ""


_COUNTED = ("dynamo", "aot_forward", "aot_backward", "aot_inference")


class GraphFigures(msgspec.Struct, frozen=True):
    """What is known of a graph in numbers."""

    caught: GraphStatistics | None
    """As Dynamo caught it; None where its text is missing or there was too much to read."""
    stages: tuple[tuple[Stage, GraphStatistics | None], ...]
    forward: tuple[GraphStatistics, ...]
    """Where the forward pass's operations are counted: a graph may be cut before it is compiled."""
    backward: tuple[GraphStatistics, ...]

    @property
    def flops(self) -> Amount | None:
        """Of both passes; None where nothing could be counted."""
        parts = [part.flops for part in (*self.forward, *self.backward)]
        return sum(parts, Amount()) if parts else None


def graph_figures(graph: StagedGraph, reader: StageReader) -> GraphFigures:
    stages = tuple(
        (stage, _statistics(stage, graph, reader))
        for stage in graph.stages
        if stage.kind in _COUNTED
    )
    caught = next((known for stage, known in stages if stage.kind == "dynamo"), None)
    # Below Dynamo every product is an op of its own; above, some hide in composite ones.
    forward = _all_of(stages, "aot_forward", "aot_inference")
    if not forward and caught is not None:
        forward = (caught,)
    return GraphFigures(caught, stages, forward, _all_of(stages, "aot_backward"))


def _all_of(
    stages: tuple[tuple[Stage, GraphStatistics | None], ...], *kinds: str
) -> tuple[GraphStatistics, ...]:
    """Empty where one of them is not known: a part must not pass for the whole."""
    found = [known for stage, known in stages if stage.kind in kinds]
    return tuple(known for known in found if known is not None) if None not in found else ()


def _statistics(stage: Stage, graph: StagedGraph, reader: StageReader) -> GraphStatistics | None:
    printed = reader.affordable(stage)
    if printed is None or not printed.nodes:
        return None
    graphs = portable_graphs(printed)
    if stage.kind == "dynamo":
        graphs[0] = _with_sources(graphs[0], reader.caught(graph))
    return graph_statistics(graphs, printed.returned)


def _with_sources(graph: Graph, caught: Graph | None) -> Graph:
    """The text does not tell parameters from arguments; what capture kept does."""
    sources = {node.name: node.source for node in caught.nodes if node.source} if caught else {}
    nodes = (
        msgspec.structs.replace(node, source=sources[node.name]) if node.name in sources else node
        for node in graph.nodes
    )
    return Graph(tuple(nodes))
