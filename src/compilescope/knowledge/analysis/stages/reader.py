"""Reads the artifacts of a run's stages. What a file says is never trusted to be what it should."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.knowledge.analysis.stages.kernels import read_output_code
from compilescope.knowledge.analysis.stages.line_links import Family, ReadStage
from compilescope.knowledge.analysis.stages.printed_graph import PrintedGraph, read_printed
from compilescope.knowledge.analysis.stages.source import Functions
from compilescope.knowledge.analysis.stages.staged_graphs import (
    KERNELS,
    Stage,
    StagedGraph,
    order_stages,
)
from compilescope.knowledge.source.spots import Sources
from compilescope.record.graph import (
    Graph,
    Origins,
    decode_graph,
    decode_kernel_origins,
    decode_origins,
)
from compilescope.record.run import Run


class StageReader(msgspec.Struct):
    """Reads the texts of a run's stages, each once."""

    run: Run
    sources: Sources
    allowance: int = 4_000_000
    """Characters that may still be read for figures' sake: about half a second's work."""
    _printed: dict[str, PrintedGraph] = msgspec.field(default_factory=dict)
    _portable: dict[str, Graph | None] = msgspec.field(default_factory=dict)
    _functions: Functions | None = None

    @property
    def functions(self) -> Functions:
        if self._functions is None:
            self._functions = Functions(self.sources)
        return self._functions

    def text(self, stage: Stage) -> str:
        return (stage.text and self.run.artifacts.get(stage.text)) or ""

    def length(self, stage: Stage) -> int:
        """About how long it is."""
        return self.run.artifacts.size(stage.text) if stage.text else 0

    def printed(self, stage: Stage) -> PrintedGraph:
        if not stage.text:
            return PrintedGraph()
        if stage.text not in self._printed:
            self._printed[stage.text] = read_printed(self.text(stage))
        return self._printed[stage.text]

    def affordable(self, stage: Stage) -> PrintedGraph | None:
        """As `printed`, unless that would go beyond the allowance."""
        if stage.text not in self._printed:
            length = self.length(stage)
            if length > self.allowance:
                return None
            self.allowance -= length
        return self.printed(stage)

    def caught(self, graph: StagedGraph) -> Graph | None:
        """What Dynamo caught, with the user's frames."""
        return self.portable(graph.body.graph if graph.body is not None else None)

    def portable(self, name: str | None) -> Graph | None:
        """A graph that was made from the live one; None where the record does not hold it."""
        if not name:
            return None
        if name not in self._portable:
            text = self.run.artifacts.get(name)
            try:
                self._portable[name] = decode_graph(text) if text else None
            except msgspec.DecodeError:
                self._portable[name] = None
        return self._portable[name]

    def family(self, graph: StagedGraph, stages: Iterable[Stage]) -> Family:
        return Family(
            [self._read(stage) for stage in order_stages(list(stages))], self.caught(graph)
        )

    def _read(self, stage: Stage) -> ReadStage:
        text = self.run.artifacts.get(stage.origins) if stage.origins else None
        if stage.kind.startswith("ir_"):
            return ReadStage(stage)
        try:
            if stage.kind == KERNELS:
                calls = decode_kernel_origins(text).calls if text else ()
                return ReadStage(stage, code=read_output_code(self.text(stage), calls))
            origins = decode_origins(text) if text else self._lowered_origins(stage)
        except msgspec.DecodeError:
            origins = Origins()
        return ReadStage(stage, self.printed(stage), origins)

    def _lowered_origins(self, stage: Stage) -> Origins:
        """Those of a post-grad graph were noted with the kernels that were made of it."""
        text = self.run.artifacts.get(stage.after) if stage.after else None
        return decode_kernel_origins(text).graph if text else Origins()
