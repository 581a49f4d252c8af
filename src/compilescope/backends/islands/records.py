"""What an adapter made of the graphs it was given: kept while they are compiled and run, and
reported as islands, borders and what stayed behind, in ops, operations and bytes.

Records only, without torch: a report draws them, JSON carries them. A sum of which a part is not
known says so (`Amount`), and a share that cannot be told is None.

What would be covered if the device took one more op is found by judging the graph again without
that refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from compilescope.backends.islands.support import NodeJudgement, NodeRefusal
from compilescope.knowledge.rules.hardware.constraint import is_parameter
from compilescope.record.body import GraphStage, Verdict
from compilescope.record.graph import Node, TensorInfo
from compilescope.record.graphs.flops import count_flops, is_counted
from compilescope.record.graphs.statistics import Amount, amount_of, tensor_bytes
from compilescope.record.stack import Frame

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


_MOST_ASKED = 12
"""Operators of which it is said what the device would gain with them. Chosen: for each the whole
graph is judged again."""
_BY_THE_WAY = ("view", "small-island", "input")
"""Why a view is on the host that the device would take: nothing is lost by it."""
_MOST_PLACES = 20
"""Lines named for one operator. Chosen: what a report can show."""


class Sizes:
    """What each node of a graph computes and makes. A view does neither."""

    def __init__(self, judgement: NodeJudgement, is_view: Callable[[Node], bool]) -> None:
        self.judgement = judgement
        self.ops = [
            name
            for name, node in judgement.nodes.items()
            if judgement.is_counted(name) and not is_view(node)
        ]
        tensors = {n.name: n.outputs[0] for n in judgement.nodes.values() if n.outputs}
        self._flops: dict[str, Amount] = {}
        self._made: dict[str, Amount] = {}
        for name in self.ops:
            node = judgement.nodes[name]
            counted = (count_flops(node, tensors),) if is_counted(node) else ()
            self._flops[name] = amount_of(counted)
            self._made[name] = tensor_bytes(node.outputs)

    def flops(self, names: Iterable[str]) -> Amount:
        return total(self._flops[name] for name in names if name in self._flops)

    def made(self, names: Iterable[str]) -> Amount:
        return total(self._made[name] for name in names if name in self._made)

    def counted(self, names: Collection[str]) -> list[str]:
        return [name for name in names if name in self._flops]


def describe_island(
    sizes: Sizes,
    number: int,
    names: Sequence[str],
    others: Mapping[str, int],
    status: IslandStatus,
) -> Island:
    """`others` says in which island each node is."""
    nodes, counted = sizes.judgement.nodes, sizes.counted(names)
    lines = sizes.judgement.lines
    return Island(
        number=number,
        status=status,
        ops=len(counted),
        by_op=dict(Counter(nodes[name].target for name in counted).most_common()),
        flops=sizes.flops(counted),
        made=sizes.made(counted),
        inward=_inward(nodes, number, names, others),
        outward=_outward(nodes, names, others),
        frame=next((lines[name] for name in counted if name in lines), None),
    )


def _inward(
    nodes: Mapping[str, Node], number: int, names: Sequence[str], others: Mapping[str, int]
) -> tuple[Crossing, ...]:
    needed = dict.fromkeys(other for name in names for other in nodes[name].inputs)
    return tuple(
        Crossing(name, _origin(nodes[name], others), _size(nodes[name].outputs))
        for name in needed
        if others.get(name) != number and nodes[name].outputs
    )


def _origin(node: Node, others: Mapping[str, int]) -> str:
    if node.name in others:
        return f"island {others[node.name]}"
    if node.op == "placeholder":
        return "parameter" if is_parameter(node) else "input"
    return "constant" if node.op == "get_attr" else "host"


def _outward(
    nodes: Mapping[str, Node], names: Sequence[str], others: Mapping[str, int]
) -> tuple[Crossing, ...]:
    """One for each tensor and side that it goes to: several users there share a copy."""
    inside = set(names)
    places: dict[str, dict[str, None]] = {}
    for node in nodes.values():
        if node.name in inside:
            continue
        place = "output" if node.op == "output" else _origin(node, others)
        for name in node.inputs:
            if name in inside and nodes[name].outputs:
                places.setdefault(name, {})[place] = None
    for found in places.values():
        if "host" in found:
            found.pop("output", None)
    return tuple(
        Crossing(name, place, _size(nodes[name].outputs))
        for name in names
        for place in places.get(name, ())
    )


def _size(tensors: Sequence[TensorInfo]) -> int | None:
    amount = tensor_bytes(tensors)
    return None if amount.unknown else amount.known


def host_ops(sizes: Sizes, host: Mapping[str, NodeRefusal]) -> tuple[HostOp, ...]:
    """What stayed behind, by op and reason; what costs most comes first."""
    nodes, groups = sizes.judgement.nodes, dict[tuple[str, str], list[str]]()
    computing = set(sizes.ops)
    for name in host:
        if not sizes.judgement.is_counted(name):
            continue
        if name not in computing and host[name].rule in _BY_THE_WAY:
            continue
        groups.setdefault((nodes[name].target, host[name].rule), []).append(name)
    found = [_host_op(sizes, op, members, host[members[0]]) for (op, _), members in groups.items()]
    found.sort(key=lambda each: (-each.flops.known, -each.nodes))
    dearest = sorted(found, key=lambda each: -each.nodes)[:_MOST_ASKED]
    asked = {each.op for each in (*found[:_MOST_ASKED], *dearest)}
    gains = {op: _share_with(sizes, op) for op in asked}
    with_gains = [
        msgspec.structs.replace(each, ops_share_with=gains[each.op]) if each.op in gains else each
        for each in found
    ]
    return tuple(sorted(with_gains, key=_dearness))


def _dearness(each: HostOp) -> tuple[float, int, int]:
    return -(each.ops_share_with or 0.0), -each.flops.known, -each.nodes


def _host_op(sizes: Sizes, op: str, members: Sequence[str], refusal: NodeRefusal) -> HostOp:
    lines = Counter(sizes.judgement.lines.get(name) for name in members)
    return HostOp(
        op=op,
        rule=refusal.rule,
        nodes=len(members),
        found=refusal.found,
        allowed=refusal.allowed,
        remedy=refusal.remedy,
        severity=refusal.severity,
        flops=sizes.flops(members),
        places=tuple(LineNodes(line, count) for line, count in lines.most_common(_MOST_PLACES)),
    )


def _share_with(sizes: Sizes, op: str) -> float | None:
    """Of the ops, those that the device would take if it took this op whatever it is."""
    taken = sizes.judgement.taken(waived={op})
    return share(sum(taken[name] is None for name in sizes.ops), len(sizes.ops))


_WORST: dict[Verdict, int] = {"pass": 0, "unknown": 1, "fail": 2}


@dataclass
class IslandEntry:
    """One island and what became of it."""

    names: Sequence[str]
    status: IslandStatus = "compiled"
    reason: str = ""
    warnings: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass
class GraphEntry:
    """One graph that an adapter was given, and its islands."""

    stage: GraphStage
    compile_id: str | None
    sizes: Sizes
    host: dict[str, NodeRefusal]
    cut_by: Literal["torch", "levels"]
    host_runs: str
    islands: list[IslandEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _behind: tuple[HostOp, ...] | None = None

    def record(self) -> GraphIslands:
        sizes = self.sizes
        device = [n for e in self.islands if e.status in ON_DEVICE for n in e.names]
        partial = [n for e in self.islands if e.status == "partial" for n in e.names]
        others = {n: number for number, e in enumerate(self.islands) for n in e.names}
        if self._behind is None:
            self._behind = host_ops(sizes, self.host)
        return GraphIslands(
            stage=self.stage,
            compile_id=self.compile_id,
            ops=len(sizes.ops),
            device_ops=len(sizes.counted(device)),
            partial_ops=len(sizes.counted(partial)),
            flops=sizes.flops(sizes.ops),
            device_flops=sizes.flops(device),
            made=sizes.made(sizes.ops),
            device_made=sizes.made(device),
            islands=tuple(
                msgspec.structs.replace(
                    describe_island(sizes, number, entry.names, others, entry.status),
                    reason=entry.reason,
                    warnings=entry.warnings,
                    metadata=entry.metadata,
                )
                for number, entry in enumerate(self.islands)
            ),
            host=self._behind,
            cut_by=self.cut_by,
            host_runs=self.host_runs,
            notes=tuple(dict.fromkeys(self.notes)),
        )


class Ledger:
    """What one adapter has compiled and run so far."""

    def __init__(self) -> None:
        self.graphs: list[GraphEntry] = []
        self._checks: dict[tuple[str, str, int | None, int], WrongnessCheck] = {}

    def note(self, check: WrongnessCheck, graph: int = -1, *, settles: bool = False) -> None:
        """The worst that was seen of one kind at one island is kept.

        `settles`: a pass is an answer to what could not be told before.
        """
        key = (check.name, check.stage, check.island, graph)
        before = self._checks.get(key)
        if before is None:
            self._checks[key] = check
            return
        rank = _WORST | ({"unknown": -1} if settles else {})
        worst = check if rank[check.verdict] > rank[before.verdict] else before
        self._checks[key] = msgspec.structs.replace(worst, calls=before.calls + check.calls)

    @property
    def checks(self) -> tuple[WrongnessCheck, ...]:
        return tuple(self._checks.values())

    def report(self, device: str, adapter: str) -> AdapterReport:
        return AdapterReport(
            device=device,
            adapter=adapter,
            graphs=tuple(entry.record() for entry in self.graphs),
            checks=self.checks,
        )
