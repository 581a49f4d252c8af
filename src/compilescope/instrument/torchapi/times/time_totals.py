"""What was measured of graphs and regions, and is not written yet."""

from __future__ import annotations

from compilescope.record.bodies import GraphTime, RegionTime
from compilescope.record.stack import CodeRef


class Outside:
    """Time outside graphs, on somebody's account.

    One class for all accounts: the interpreter is quick about attributes of a class it expects.
    """

    __slots__ = ("device_ns", "ns")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.ns = self.device_ns = 0


class GraphTotals:
    """What is known of one compiled graph and not written yet."""

    __slots__ = (
        "breaks", "calls", "captured", "compile_id", "device_ns", "frame", "inside_ns", "outside",
    )  # fmt: skip

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
        self.calls = self.inside_ns = self.device_ns = 0
        self.outside.clear()

    @property
    def has_news(self) -> bool:
        return bool(self.calls or self.outside.ns or self.device_ns or self.outside.device_ns)

    def take(self, *, on_device: bool) -> GraphTime:
        body = GraphTime(
            graph=self.compile_id,
            frame=self.frame,
            captured=self.captured,
            calls=self.calls,
            inside_ns=self.inside_ns,
            after_ns=self.outside.ns,
            device_inside_ns=self.device_ns if on_device else None,
            device_after_ns=self.outside.device_ns if on_device else None,
        )
        self.clear()
        return body


class RegionTotals:
    """What is known of one `torch.compile` and not written yet."""

    __slots__ = (
        "calls", "device_inside_ns", "device_ns", "fullgraph", "inside_ns", "named", "outside",
        "ref", "total_ns", "warmup_calls", "warmup_ns",
    )  # fmt: skip

    def __init__(self, fullgraph: bool) -> None:
        self.ref: CodeRef | None = None
        self.named = False
        """Whether `ref` is settled."""
        self.fullgraph = fullgraph
        self.outside = Outside()
        self.clear()

    def clear(self) -> None:
        self.calls = self.total_ns = self.inside_ns = 0
        self.device_ns = self.device_inside_ns = 0
        self.warmup_calls = self.warmup_ns = 0
        self.outside.clear()

    @property
    def has_news(self) -> bool:
        return bool(self.total_ns or self.warmup_ns or self.device_ns)

    def take(self, *, on_device: bool) -> RegionTime:
        body = RegionTime(
            region=self.ref or CodeRef("", 0, "?"),
            calls=self.calls,
            total_ns=self.total_ns,
            inside_ns=self.inside_ns,
            entry_ns=self.outside.ns,
            warmup_calls=self.warmup_calls,
            warmup_ns=self.warmup_ns,
            device_total_ns=self.device_ns if on_device else None,
            device_inside_ns=self.device_inside_ns if on_device else None,
            device_entry_ns=self.outside.device_ns if on_device else None,
        )
        self.clear()
        return body
