"""The graphs that Dynamo handed to a backend, in the order in which it did."""

from __future__ import annotations

import msgspec

from compilescope.model.bodies import GraphCaptured
from compilescope.model.run import Run
from compilescope.model.stack import CodeRef


class DynamoGraph(msgspec.Struct, frozen=True, kw_only=True):
    """One graph."""

    compile_id: str | None
    file: str
    line: int
    function: str
    resumed_at: int | None
    """The line from which its frame goes on after a break."""
    ops: int | None
    backend: str | None
    ended_by_break: bool | None
    reason: str
    """Why it ended where it does, in PyTorch's words."""
    rank: int
    text: str | None
    """Artifact: its code."""


def captured_graphs(run: Run) -> list[DynamoGraph]:
    graphs = []
    for event, body in run.of(GraphCaptured):
        if body.stage != "dynamo":
            continue
        code = body.frame or CodeRef("", 0, "?")
        graphs.append(
            DynamoGraph(
                compile_id=event.compile_id,
                file=code.file,
                line=code.line,
                function=code.function,
                resumed_at=code.resumed_at,
                ops=body.ops,
                backend=body.backend,
                ended_by_break=body.ended_by_break,
                reason=body.reason,
                rank=event.rank,
                text=body.text,
            )
        )
    return graphs
