"""Links between the stages of a graph: which nodes, kernels and lines came from one another.

Every node of the first stage has a number. A node of a later stage has the numbers of those it
came from: by torch's own notes where there are some, else by the line of source in the comment
above it. Lines with a number in common are linked. It is no equivalence: a kernel is linked to all
that was fused into it, and those are not linked to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.stages.kernels import KernelBlock, OutputCode
from compilescope.knowledge.analysis.stages.printed_graph import Place, PrintedGraph, PrintedNode
from compilescope.knowledge.analysis.stages.staged_graphs import KERNELS, Stage
from compilescope.record.graph import Graph, Origins
from compilescope.record.stack import Frame

Numbers = tuple[int, ...]


class ReadStage(msgspec.Struct, eq=False):
    """A stage with what its text says."""

    stage: Stage
    printed: PrintedGraph = msgspec.field(default_factory=PrintedGraph)
    origins: Origins = msgspec.field(default_factory=Origins)
    code: OutputCode | None = None
    """For kernels."""
    nodes: list[Numbers] = msgspec.field(default_factory=list)
    """The numbers of each printed node."""
    blocks: list[Numbers] = msgspec.field(default_factory=list)
    """The numbers of each block of output code."""
    names: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    """Name -> indices of printed nodes: the graph's own, or else those of graphs within it."""

    def numbers(self, name: str) -> Numbers:
        indices = self.names.get(name, ())
        if len(indices) == 1:
            return self.nodes[indices[0]]
        return tuple(sorted({number for index in indices for number in self.nodes[index]}))


class Family:
    """The numbers of one graph's nodes, and which lines have them."""

    def __init__(self, stages: list[ReadStage], caught: Graph | None) -> None:
        self.stages = stages
        self.places: dict[Place, set[int]] = {}
        """A line of source -> the nodes that came from it."""
        self.calls: dict[Place, set[int]] = {}
        """A line of source -> the nodes that came from functions it called."""
        self._by_comment: dict[Place, set[int]] = {}
        self._by_name: dict[str, list[int]] = {}
        self._by_alias: dict[str, int] = {}
        self._inputs: list[int] = []
        first = next((stage for stage in stages if stage.printed.nodes), None)
        if first is None:
            # Of a damaged trace the code may be all that is left.
            for stage in stages:
                stage.blocks = [()] * len(stage.code.blocks) if stage.code is not None else []
            return
        self.first = first
        """The stage whose nodes are numbered: of a damaged trace not always the one in front."""
        self._number(first, caught)
        for index, stage in enumerate(stages):
            stage.names = _names(stage.printed)
            if stage is not first:
                # Nearest first: what an earlier stage of AOT or Inductor says of a name.
                earlier = [
                    each
                    for each in reversed(stages[:index])
                    if each.stage.kind != "dynamo" and each.code is None
                ]
                stage.nodes = [self._trace(stage, node, earlier) for node in stage.printed.nodes]
        for stage in stages:
            if stage.code is not None:
                lowered = self._lowered(stage)
                blocks = stage.code.blocks
                stage.blocks = [self._of_block(stage, block, lowered) for block in blocks]

    def _number(self, first: ReadStage, caught: Graph | None) -> None:
        known = {node.name: node for node in caught.nodes} if caught is not None else {}
        for number, node in enumerate(first.printed.nodes, 1):
            first.nodes.append((number,))
            if node.op == "placeholder":
                if node.scope == 0:
                    self._inputs.append(number)
                continue
            self._by_name.setdefault(node.name, []).append(number)
            if node.place is not None:
                self._by_comment.setdefault(node.place, set()).add(number)
            portable = known.get(node.name) if node.scope == 0 else None
            if portable is None or portable.frame is None:
                if node.place is not None:
                    self.places.setdefault(node.place, set()).add(number)
                continue
            at = portable.frame
            self.places.setdefault((at.file, at.line), set()).add(number)
            if portable.stack is not None and caught is not None:
                for frame in _stack(caught, portable.stack)[:-1]:
                    self.calls.setdefault((frame.file, frame.line), set()).add(number)
        for name in sorted(known, key=lambda name: not known[name].alias):
            numbers = self._by_name.get(name)
            if numbers:
                self._by_alias.setdefault(known[name].alias or name, numbers[0])

    def _trace(self, stage: ReadStage, node: PrintedNode, earlier: Sequence[ReadStage]) -> Numbers:
        if node.op == "placeholder":
            return self._trace_input(node, earlier)
        if node.scope == 0:
            origins = stage.origins.nodes.get(node.name, ())
            found = {number for name in origins for number in self._named(name, node.place)}
            alias = self._by_alias.get(stage.origins.gradients.get(node.name, ""), 0)
            if not found and alias and self._agrees(alias, node.place):
                found = {alias}
            if found:
                return tuple(sorted(found))
            same = _said_of(node, earlier)
            if same:
                return same
        if node.place is not None:
            return tuple(sorted(self._by_comment.get(node.place, ())))
        return ()

    def _trace_input(self, node: PrintedNode, earlier: Sequence[ReadStage]) -> Numbers:
        if node.scope:
            return ()
        if node.position is not None and node.position < len(self._inputs):
            number = self._inputs[node.position]
            if self.first.printed.nodes[number - 1].annotation == node.annotation:
                return (number,)
        return _said_of(node, earlier)

    def _named(self, name: str, place: Place | None) -> list[int]:
        """Nodes of this name. Graphs within the graph repeat names: the line tells them apart."""
        return [number for number in self._by_name.get(name, ()) if self._agrees(number, place)]

    def _agrees(self, number: int, place: Place | None) -> bool:
        other = self.first.printed.nodes[number - 1].place
        return place is None or other is None or place == other

    def _of_block(
        self, stage: ReadStage, block: KernelBlock, lowered: Sequence[ReadStage]
    ) -> Numbers:
        found: set[int] = set()
        for name in block.nodes:
            found.update(_numbers(lowered, name))
        for name in block.sources if not block.nodes else ():
            # A backward node without a source is named in torch's comment by its own name.
            own = _numbers(lowered, name) if stage.stage.direction == "backward" else ()
            found.update(own or self._by_name.get(name, [])[:1] or _numbers(lowered, name))
        return tuple(sorted(found))

    def _lowered(self, stage: ReadStage) -> list[ReadStage]:
        """The graphs that the kernels' names may be names of, nearest first."""
        near = [s for s in self.stages if s.stage is stage.stage.before]
        same = [
            s
            for s in reversed(self.stages)
            if s.stage.kind not in ("dynamo", KERNELS) and s not in near
            and s.stage.direction in (stage.stage.direction, "")
        ]  # fmt: skip
        return near + same


def _said_of(node: PrintedNode, stages: Sequence[ReadStage]) -> Numbers:
    """What the first of these stages says that knows a node of this name and line."""
    for stage in stages:
        for index in stage.names.get(node.name, ()):
            place = stage.printed.nodes[index].place
            same = place is None or node.place is None or place == node.place
            if same and stage.nodes[index]:
                return stage.nodes[index]
    return ()


def _numbers(stages: Iterable[ReadStage], name: str) -> Numbers:
    return next((stage.numbers(name) for stage in stages if name in stage.names), ())


def _names(printed: PrintedGraph) -> dict[str, tuple[int, ...]]:
    names: dict[str, tuple[int, ...]] = {}
    for index, node in enumerate(printed.nodes):
        earlier = names.get(node.name, ())
        if not earlier or printed.nodes[earlier[0]].scope:
            names[node.name] = (*earlier, index)
    return names


def _stack(graph: Graph, index: int) -> tuple[Frame, ...]:
    return graph.stacks[index] if 0 <= index < len(graph.stacks) else ()
