"""What an adapter made of the graphs it was given: islands, borders, and what stayed behind.

Records only, without torch: a report draws them, JSON carries them. A sum of which a part is not
known says so (`Amount`), and a share that cannot be told is None.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from compilescope.graphs.statistics import Amount
from compilescope.model.bodies import GraphStage
from compilescope.model.body import Verdict
from compilescope.model.stack import Frame

IslandStatus = Literal["compiled", "partial", "emulated", "fallback", "failed"]
"""`emulated`: the adapter says that it stands in for a device. `fallback`: the adapter handed back
a function that runs on the host. `failed`: it has none; the host runs the island."""
ON_DEVICE = ("compiled", "emulated")


class Crossing(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tensor that goes over the border of an island."""

    name: str
    """The node that makes it."""
    other: str
    """Where it comes from or goes to: `input`, `parameter`, `constant`, `host`, `output`, or
    `island 2`. What the backward graph is given is its `input`, whatever it is."""
    size_bytes: int | None = None
    """None where a size is symbolic."""


class Island(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a graph that was given to the adapter.

    Ops are operators that compute: views, sizes and the picking of results are none.
    """

    number: int
    status: IslandStatus
    reason: str = ""
    """Why it does not run on the device, or not wholly."""
    ops: int
    by_op: dict[str, int]
    """Most frequent first."""
    flops: Amount
    made: Amount
    """Bytes of the tensors that its ops make."""
    inward: tuple[Crossing, ...]
    outward: tuple[Crossing, ...]
    frame: Frame | None = None
    """The user's line of its first op."""
    warnings: tuple[str, ...] = ()
    """The adapter's own."""
    metadata: dict[str, str] = {}
    """What else the adapter says of it."""


class LineNodes(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the user's, and how many nodes came from it."""

    frame: Frame | None
    nodes: int


class HostOp(msgspec.Struct, frozen=True, kw_only=True):
    """An operator that stayed on the host for one reason, and what that costs."""

    op: str
    rule: str
    """The constraint that refuses it, or what else keeps it: `input`, `randomness`, `writes`,
    `small-island`, `fallback` and the like."""
    nodes: int
    found: str
    allowed: str = ""
    remedy: str = ""
    severity: Literal["error", "unknown"] = "error"
    """`unknown`: a constraint could not tell."""
    flops: Amount = Amount()
    places: tuple[LineNodes, ...] = ()
    """Most nodes first."""
    ops_share_with: float | None = None
    """The share of ops on the device if the device took it; None where that was not worked out."""


class GraphIslands(msgspec.Struct, frozen=True, kw_only=True):
    """One graph, cut into islands and what stays on the host."""

    stage: GraphStage
    compile_id: str | None = None
    ops: int
    device_ops: int
    partial_ops: int = 0
    """In islands of which the adapter says that only a part runs on the device."""
    flops: Amount
    device_flops: Amount
    made: Amount
    """Bytes of the tensors that ops make."""
    device_made: Amount
    islands: tuple[Island, ...] = ()
    host: tuple[HostOp, ...] = ()
    """Dearest first."""
    cut_by: Literal["torch", "levels"] = "torch"
    """torch's CapabilityBasedPartitioner, or, for graphs too large for it, by dependency level."""
    host_runs: str = "eager"
    """What runs the rest."""
    notes: tuple[str, ...] = ()
    """What did not go as it was asked for."""


class WrongnessCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One look for silent wrongness."""

    name: str
    verdict: Verdict
    reason: str
    stage: str = ""
    island: int | None = None
    """None for what concerns the whole model."""
    calls: int = 1
    """Calls that were looked at."""
    frame: Frame | None = None


class AdapterReport(msgspec.Struct, frozen=True, kw_only=True):
    """All that one adapter was given since it was made, or since `forget()`."""

    device: str
    adapter: str
    graphs: tuple[GraphIslands, ...] = ()
    checks: tuple[WrongnessCheck, ...] = ()
    """Only in checking mode, and what is noticed without it."""

    @property
    def islands(self) -> tuple[Island, ...]:
        return tuple(island for graph in self.graphs for island in graph.islands)

    @property
    def ops_share(self) -> float | None:
        """Of all graphs; None where there is no op."""
        return share(
            sum(graph.device_ops for graph in self.graphs), sum(graph.ops for graph in self.graphs)
        )

    @property
    def flops_share(self) -> float | None:
        return amount_share(
            total(graph.device_flops for graph in self.graphs),
            total(graph.flops for graph in self.graphs),
        )

    @property
    def made_share(self) -> float | None:
        """Of the bytes that ops make."""
        return amount_share(
            total(graph.device_made for graph in self.graphs),
            total(graph.made for graph in self.graphs),
        )

    @property
    def failures(self) -> tuple[WrongnessCheck, ...]:
        return tuple(check for check in self.checks if check.verdict == "fail")

    def to_json(self) -> str:
        """The records, and the shares that follow from them."""
        shares = {
            "ops_share": self.ops_share,
            "flops_share": self.flops_share,
            "made_share": self.made_share,
        }
        return msgspec.json.encode(shares | msgspec.structs.asdict(self)).decode()


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def amount_share(part: Amount, whole: Amount) -> float | None:
    """None where a part of the sum is not known: it could be the larger part."""
    return None if whole.unknown else share(part.known, whole.known)


def total(amounts: Iterable[Amount]) -> Amount:
    result = Amount()
    for amount in amounts:
        result = result + amount
    return result
