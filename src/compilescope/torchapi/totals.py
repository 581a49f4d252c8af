"""The sums that a timed capture keeps, and the rule by which a call's time is added to them.

Time outside graphs goes to the last graph that a break ended; before there is one, to the region.
Sums are plain integers: under the interpreter's lock an addition is whole, so threads share them.
"""

from __future__ import annotations

from compilescope.model.bodies import GraphTime, RegionTime
from compilescope.model.stack import CodeRef


class GraphTotals:
    """What is known of one compiled graph and not written yet."""

    __slots__ = ("after_ns", "breaks", "calls", "captured", "compile_id", "frame", "inside_ns")

    def __init__(
        self, compile_id: str, captured: str | None, frame: CodeRef | None, breaks: bool
    ) -> None:
        self.compile_id = compile_id
        self.captured = captured
        self.frame = frame
        self.breaks = breaks
        self.clear()

    def clear(self) -> None:
        self.calls = self.inside_ns = self.after_ns = 0

    def take(self) -> GraphTime:
        body = GraphTime(
            graph=self.compile_id,
            frame=self.frame,
            captured=self.captured,
            calls=self.calls,
            inside_ns=self.inside_ns,
            after_ns=self.after_ns,
        )
        self.clear()
        return body


class RegionTotals:
    """What is known of one `torch.compile` and not written yet."""

    __slots__ = (
        "calls", "entry_ns", "fullgraph", "inside_ns", "ref", "total_ns", "warmup_calls",
        "warmup_ns",
    )  # fmt: skip

    def __init__(self, fullgraph: bool) -> None:
        self.ref: CodeRef | None = None
        self.fullgraph = fullgraph
        self.clear()

    def clear(self) -> None:
        self.calls = self.total_ns = self.inside_ns = self.entry_ns = 0
        self.warmup_calls = self.warmup_ns = 0

    def take(self) -> RegionTime:
        body = RegionTime(
            region=self.ref or CodeRef("", 0, "?"),
            calls=self.calls,
            total_ns=self.total_ns,
            inside_ns=self.inside_ns,
            entry_ns=self.entry_ns,
            warmup_calls=self.warmup_calls,
            warmup_ns=self.warmup_ns,
        )
        self.clear()
        return body


class Call:
    """The region call that one thread is in."""

    __slots__ = ("compiles", "depth", "in_graph", "log", "owner", "region", "start")

    def __init__(self) -> None:
        self.depth = 0
        self.in_graph = False
        self.log: list[tuple[GraphTotals, int, int]] = []
        self.region = RegionTotals(fullgraph=False)
        self.owner: GraphTotals | None = None
        """The last graph that a break ended: what runs outside graphs since then is its doing."""
        self.start = self.compiles = 0

    def settle(self, end: int, steady: bool) -> None:
        """Add up what happened from `start` to `end`, and forget it."""
        last, owner, region = self.start, self.owner, self.region
        if steady:
            region.total_ns += end - last
            for graph, start, stop in self.log:
                inside = stop - start
                graph.calls += 1
                graph.inside_ns += inside
                region.inside_ns += inside
                if owner is None:
                    region.entry_ns += start - last
                else:
                    owner.after_ns += start - last
                last = stop
                if graph.breaks:
                    owner = graph
            if owner is None:
                region.entry_ns += end - last
            else:
                owner.after_ns += end - last
        else:
            region.warmup_ns += end - last
            for graph, _, _ in self.log:
                if graph.breaks:
                    owner = graph
        self.owner = owner
        self.log.clear()
