"""Why Dynamo split a function into several graphs: each graph break once, in PyTorch's words."""

from __future__ import annotations

import msgspec

from compilescope.findings.breaks import break_sites
from compilescope.model.bodies import GraphCaptured
from compilescope.model.run import Run
from compilescope.model.stack import place_of


class BreakReason(msgspec.Struct, frozen=True, kw_only=True):
    """One graph break."""

    gb_id: str | None
    gb_type: str
    explanation: str
    hints: tuple[str, ...]
    file: str
    line: int
    function: str
    source: str
    count: int
    """How often it was reported."""

    def __str__(self) -> str:
        at = f"{place_of(self.file, self.line)} in {self.function}" if self.file else self.function
        source = f" `{self.source.strip()}`" if self.source.strip() else ""
        name = f"{self.gb_type} ({self.gb_id})" if self.gb_id else self.gb_type
        return f"{at}{source}: {name}: {self.brief}".rstrip(": ")

    @property
    def brief(self) -> str:
        """The first paragraph of the explanation; what follows is how a value was computed."""
        return " ".join(self.explanation.strip().split("\n\n", 1)[0].split())


def break_reasons(run: Run) -> list[BreakReason]:
    """In order of appearance."""
    return [
        BreakReason(
            gb_id=site.gb_id,
            gb_type=site.gb_type,
            explanation=site.explanation,
            hints=site.hints,
            file=site.file,
            line=site.line,
            function=site.function,
            source=site.source,
            count=site.count,
        )
        for site in break_sites(run)
    ]


def graph_count(run: Run) -> int:
    """Graphs that Dynamo handed to a backend."""
    return sum(body.stage == "dynamo" for _, body in run.of(GraphCaptured))
