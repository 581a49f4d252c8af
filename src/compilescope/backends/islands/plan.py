"""Plans which nodes of a graph become islands: the parts that a device takes and runs.

Every other node stays on the host, with a reason. No island needs another by way of the host and
back, so each can be run as one call.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from torch.fx import GraphModule

from compilescope.backends.islands.partitioner import propose_islands
from compilescope.backends.islands.pieces import needs_of
from compilescope.backends.islands.support import (
    NodeJudgement,
    NodeRefusal,
    Unsure,
    island_graph,
    island_refusal,
)
from compilescope.torchapi.calls.operators import is_view


class IslandPlan(NamedTuple):
    """Which nodes go to the device."""

    islands: list[list[str]]
    """In order of execution."""
    host: dict[str, NodeRefusal]
    """Every other op, and why."""
    cut_by: Literal["torch", "levels"]


def plan_islands(
    module: GraphModule,
    judgement: NodeJudgement,
    ordered: Sequence[str],
    *,
    min_ops: int,
    unsure: Unsure,
) -> IslandPlan:
    """Islands of what the device takes, without those that are too small or refused as a whole."""
    taken = judgement.taken()
    device = {name for name, refusal in taken.items() if refusal is None}
    host = {name: refusal for name, refusal in taken.items() if refusal is not None}
    needs = needs_of(module, ordered)
    proposed, cut_by = propose_islands(needs, device)
    islands = []
    for whole in proposed:
        names, views = _without_views(module, judgement, whole)
        host.update(dict.fromkeys(views, _VIEW))
        refusal = _too_small(judgement, names, min_ops)
        refusal = refusal or _refused_whole(module, judgement, names, unsure)
        if refusal is None:
            islands.append(names)
        else:
            host.update(dict.fromkeys(names, refusal))
    return IslandPlan(islands, host, cut_by)


_VIEW = NodeRefusal(rule="view", op="", found="a view of host memory stays on the host")


def _without_views(
    module: GraphModule, judgement: NodeJudgement, names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """An island without views of the host's tensors that the host needs: none crosses for them."""
    inside, views = set(names), []
    for node in module.graph.nodes:
        if node.name not in inside or not is_view_node(judgement.nodes[node.name]):
            continue
        from_inside = any(other.name in inside for other in node.all_input_nodes)
        if not from_inside and _is_wanted(node, inside):
            picks = [user.name for user in node.users if not judgement.is_valued(user.name)]
            views += [name for name in (node.name, *picks) if name in inside]
            inside.difference_update(views)
    return [name for name in names if name in inside], views


def _is_wanted(node: Any, inside: set[str]) -> bool:
    """Outside of the island, by itself or as one of several results?"""
    return any(
        user.name not in inside or (user.target is operator.getitem and _is_wanted(user, inside))
        for user in node.users
    )


def _too_small(judgement: NodeJudgement, names: Sequence[str], min_ops: int) -> NodeRefusal | None:
    """Views alone are no work: they do not make an island."""
    working = [
        name
        for name in names
        if judgement.is_counted(name) and not is_view_node(judgement.nodes[name])
    ]
    if len(working) >= min_ops:
        return None
    found = f"an island of {len(working)} compute op{'' if len(working) == 1 else 's'}"
    return NodeRefusal(rule="small-island", op="", found=found, allowed=f"at least {min_ops}")


def is_view_node(node: Any) -> bool:
    """Does it only look elsewhere at memory that is there?"""
    return bool(node.calls) and all(is_view(call.op) for call in node.calls)


def _refused_whole(
    module: GraphModule, judgement: NodeJudgement, names: Sequence[str], unsure: Unsure
) -> NodeRefusal | None:
    if not judgement.of_graphs:
        return None
    inside = set(names)
    outputs = [
        node.name
        for node in module.graph.nodes
        if node.name in inside and any(user.name not in inside for user in node.users)
    ]
    graph = island_graph(judgement.graph, inside, outputs)
    breach = island_refusal(graph, judgement.of_graphs, unsure)
    if breach is None:
        return None
    return NodeRefusal(
        rule=breach.rule,
        op=breach.op,
        found=f"its island: {breach.found}",
        allowed=breach.allowed,
        remedy=breach.remedy,
        severity="unknown" if breach.severity == "unknown" else "error",
    )
