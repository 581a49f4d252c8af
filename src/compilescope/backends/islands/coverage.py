"""How much of a graph the device has: ops, operations and bytes, what crosses, and what it costs.

What would be covered if the device took one more op is found by judging the graph again without
that refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from compilescope.backends.islands.records import (
    Crossing,
    HostOp,
    Island,
    IslandStatus,
    LineNodes,
    share,
    total,
)
from compilescope.backends.islands.support import NodeJudgement, NodeRefusal
from compilescope.graphs.flops import count_flops, is_counted
from compilescope.graphs.statistics import Amount, amount_of, tensor_bytes
from compilescope.model.graph import Node, TensorInfo
from compilescope.rules.hardware.constraint import is_parameter

_MOST_ASKED = 12
"""Operators of which it is said what the device would gain with them. Chosen: for each the whole
graph is judged again."""
BY_THE_WAY = ("view", "small-island", "input")
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
        if name not in computing and host[name].rule in BY_THE_WAY:
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
