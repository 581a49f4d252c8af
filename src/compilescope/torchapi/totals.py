"""The sums that a timed capture keeps, and the rule by which a call's time is added to them.

Time outside graphs goes to the last graph that a break ended; before there is one, to the region.
Sums are plain integers: under the interpreter's lock an addition is whole, so threads share them.
"""

from __future__ import annotations

from typing import Any

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
        "calls", "entry_ns", "fullgraph", "inside_ns", "named", "ref", "total_ns", "warmup_calls",
        "warmup_ns",
    )  # fmt: skip

    def __init__(self, fullgraph: bool) -> None:
        self.ref: CodeRef | None = None
        self.named = False
        """Whether `ref` is settled."""
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


_MOST_GRAPHS = 4096
"""Graph calls of one region call that are kept; more are settled as a part of it."""


class ThreadLog:
    """What one thread noted, and the region call it is in.

    The log is flat, three items a note, since it is written at every call:
    a region entered `(its totals, compilations so far, time)`, a region left `(None, compilations
    so far, time)`, a graph that ran `(its totals, start, stop)`. Graphs are noted when they end, so
    one within another comes before it.
    """

    def __init__(self) -> None:
        self.log: list[Any] = []
        self._region: RegionTotals | None = None
        self._depth = self._start = self._compiles = 0
        self._graphs: list[tuple[GraphTotals, int, int]] = []
        self._owner: GraphTotals | None = None
        """The last graph that a break ended: what runs outside graphs since then is its doing."""

    def read(self, compiles: int) -> None:
        """Add up what is in the log; `compiles` is how often anything compiled up to now."""
        notes = self.log[: len(self.log) // 3 * 3]
        # The thread may be adding to it meanwhile.
        del self.log[: len(notes)]
        items = iter(notes)
        graphs, seen = self._graphs, self._graphs.append
        for note in zip(items, items, items, strict=True):
            what = note[0]
            if what is None:
                self._leave(note[1], note[2])
            elif type(what) is RegionTotals:
                self._enter(what, note[1], note[2])
            elif self._depth:
                seen(note)
            else:  # In no region that we know of: only its own time can be told.
                what.calls += 1
                what.inside_ns += note[2] - note[1]
        if len(graphs) > _MOST_GRAPHS and self._region is not None:
            # A call that lasts for the whole program. What follows of it is judged anew.
            end = graphs[-1][2]
            self._settle(self._region, end, steady=self._compiles == compiles)
            self._start, self._compiles = end, compiles

    @property
    def outermost(self) -> RegionTotals | None:
        """The region that this thread is in, as far as it was read; None within a nested one."""
        return self._region if self._depth == 1 else None

    def forget(self) -> None:
        self.log.clear()
        self._graphs.clear()
        self._depth = 0

    def _enter(self, region: RegionTotals, compiles: int, now: int) -> None:
        # torch 2.13 raises "found no compiled frames" without leaving a fullgraph region.
        abandoned = self._region is not None and self._region.fullgraph and not self._graphs
        if self._depth and not abandoned:
            self._depth += 1  # Within another one's eager part: it belongs to that one.
            return
        self._depth = 1
        self._region, self._compiles, self._start = region, compiles, now
        self._owner = None

    def _leave(self, compiles: int, now: int) -> None:
        region = self._region
        if self._depth != 1 or region is None:
            self._depth = max(self._depth - 1, 0)
            return
        self._depth = 0
        graphs = self._graphs
        if compiles != self._compiles:
            region.warmup_calls += 1
            self._settle(region, now, steady=False)
        elif len(graphs) == 1 and self._owner is None:
            # What most calls are, and all are read: `_settle` in fewer steps.
            graph, start, stop = graphs[0]
            region.calls += 1
            region.total_ns += now - self._start
            region.inside_ns += stop - start
            graph.calls += 1
            graph.inside_ns += stop - start
            if graph.breaks:
                graph.after_ns += now - stop
                region.entry_ns += start - self._start
            else:
                region.entry_ns += start - self._start + now - stop
            graphs.clear()
        else:
            region.calls += 1
            self._settle(region, now, steady=True)
        self._region = None

    def _settle(self, region: RegionTotals, end: int, steady: bool) -> None:
        """Add up what happened from `start` to `end`, and forget it."""
        owner: GraphTotals | None = None
        if steady:
            region.total_ns += end - self._start
            # Backwards, a graph comes before those within it, and a gap before whom to charge.
            gap, later = 0, end
            for graph, start, stop in reversed(self._graphs):
                if stop > later:
                    continue  # Within the graph seen before it.
                gap += later - stop
                later = start
                graph.calls += 1
                graph.inside_ns += stop - start
                region.inside_ns += stop - start
                if graph.breaks:
                    graph.after_ns += gap
                    gap = 0
                    owner = owner or graph
            gap += later - self._start
            if self._owner is None:
                region.entry_ns += gap
            else:
                self._owner.after_ns += gap
        else:
            region.warmup_ns += end - self._start
            owner = next((graph for graph, _, _ in reversed(self._graphs) if graph.breaks), None)
        self._owner = owner or self._owner
        self._graphs.clear()
