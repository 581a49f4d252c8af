"""The sums that a timed capture keeps, and the call that a thread is in.

Time outside graphs goes to the last graph that a break ended; before there is one, to the region.
Sums are plain integers: under the interpreter's lock an addition is whole, so threads share them.
"""

from __future__ import annotations

from compilescope.model.bodies import GraphTime, RegionTime
from compilescope.model.stack import CodeRef


class Outside:
    """Time outside graphs, on somebody's account.

    One class for all accounts: the interpreter is quick about attributes of a class it expects.
    """

    __slots__ = ("ns",)

    def __init__(self) -> None:
        self.ns = 0


class GraphTotals:
    """What is known of one compiled graph and not written yet."""

    __slots__ = ("breaks", "calls", "captured", "compile_id", "frame", "inside_ns", "outside")

    def __init__(
        self, compile_id: str, captured: str | None, frame: CodeRef | None, breaks: bool
    ) -> None:
        self.compile_id = compile_id
        self.captured = captured
        self.frame = frame
        self.breaks = breaks
        self.outside = Outside()
        self.clear()

    def clear(self) -> None:
        self.calls = self.inside_ns = self.outside.ns = 0

    def take(self) -> GraphTime:
        body = GraphTime(
            graph=self.compile_id,
            frame=self.frame,
            captured=self.captured,
            calls=self.calls,
            inside_ns=self.inside_ns,
            after_ns=self.outside.ns,
        )
        self.clear()
        return body


class RegionTotals:
    """What is known of one `torch.compile` and not written yet."""

    __slots__ = (
        "calls", "fullgraph", "inside_ns", "named", "outside", "ref", "total_ns", "warmup_calls",
        "warmup_ns",
    )  # fmt: skip

    def __init__(self, fullgraph: bool) -> None:
        self.ref: CodeRef | None = None
        self.named = False
        """Whether `ref` is settled."""
        self.fullgraph = fullgraph
        self.outside = Outside()
        self.clear()

    def clear(self) -> None:
        self.calls = self.total_ns = self.inside_ns = self.outside.ns = 0
        self.warmup_calls = self.warmup_ns = 0

    def take(self) -> RegionTime:
        body = RegionTime(
            region=self.ref or CodeRef("", 0, "?"),
            calls=self.calls,
            total_ns=self.total_ns,
            inside_ns=self.inside_ns,
            entry_ns=self.outside.ns,
            warmup_calls=self.warmup_calls,
            warmup_ns=self.warmup_ns,
        )
        self.clear()
        return body


class Call:
    """The region call that one thread is in. Invariant: all time up to `last` has been added."""

    __slots__ = ("busy", "depth", "inside_ns", "last", "owner", "region", "start", "warming")

    def __init__(self) -> None:
        self.region = RegionTotals(fullgraph=False)
        self.owner = self.region.outside
        """Of whose doing time outside graphs is: the last graph a break ended, or the region."""
        self.depth = 0
        """Regions entered and not left: only the outermost is timed."""
        self.busy = False
        """Graphs are not timed now: one of them runs, or the call is warming up."""
        self.warming = False
        self.start = self.last = self.inside_ns = 0

    def warm_up(self) -> None:
        """Something compiles: what is left of the call is no steady state."""
        if self.depth and not self.warming:
            self.region.total_ns += self.last - self.start
            self.region.inside_ns += self.inside_ns
            self.busy = self.warming = True

    def end_warm(self, now: int) -> None:
        self.region.warmup_calls += 1
        self.region.warmup_ns += now - self.last
        self.busy = self.warming = False

    @property
    def abandoned(self) -> bool:
        """torch 2.13 raises "found no compiled frames" without leaving a fullgraph region."""
        return self.region.fullgraph and (self.warming or not self.inside_ns) and not self.in_graph

    @property
    def in_graph(self) -> bool:
        return self.busy and not self.warming
