"""Cuts a graph into islands that a device takes, with torch's CapabilityBasedPartitioner.

torch's takes time with the cube of the nodes (57 s for 1,500 nodes in 150 islands, torch 2.13), so
it is given a sketch in which neighbours that can be merged without any doubt are one node already.
A graph whose sketch is still large is cut by level: in linear time, and with no more islands.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import torch.fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

Inputs = Mapping[str, Sequence[str]]
"""Node -> the nodes that must run before it. Nodes stand in order of execution."""
Way = Literal["torch", "levels"]
_LARGEST_SKETCH = 300
"""Nodes of a sketch that torch's partitioner is given. Chosen: with the cube of their number 300
take some half a second, by the figure above."""


def propose_islands(
    inputs: Inputs, device: set[str], *, largest_sketch: int = _LARGEST_SKETCH
) -> tuple[list[list[str]], Way]:
    """Groups of the nodes in `device`; no two of them need one another, nor by way of others."""
    if not device:
        return [], "torch"
    levels = _levels(inputs, device)
    groups = _contracted(inputs, levels, device)
    members: dict[str, list[str]] = {}
    for name in inputs:
        members.setdefault(groups[name], []).append(name)
    sketch = _quotient(inputs, groups)
    supported = {group for group in sketch if group in device}
    if len(sketch) > largest_sketch:
        return _by_level(levels, device), "levels"
    proposed = _by_torch(sketch, supported)
    place = {name: number for number, name in enumerate(inputs)}
    islands = [
        sorted((name for group in part for name in members[group]), key=place.__getitem__)
        for part in proposed
    ]
    return sorted(islands, key=lambda island: place[island[0]]), "torch"


def _contracted(inputs: Inputs, levels: Mapping[str, int], device: set[str]) -> dict[str, str]:
    """Node -> the group it is in: neighbours on one side and one level are one.

    Nothing leads from a level back to it, so no way leads out of such a group and in again.
    """
    groups = {name: name for name in inputs}
    for name, needed in inputs.items():
        for other in needed:
            if levels[other] == levels[name] and (other in device) == (name in device):
                groups[_root(groups, other)] = _root(groups, name)
    return {name: _root(groups, name) for name in inputs}


def _root(groups: dict[str, str], name: str) -> str:
    while groups[name] != name:
        groups[name] = groups[groups[name]]
        name = groups[name]
    return name


def _quotient(inputs: Inputs, groups: Mapping[str, str]) -> dict[str, list[str]]:
    """The graph of the groups, in an order in which they can run."""
    before: dict[str, dict[str, None]] = {}
    for name, needed in inputs.items():
        own = before.setdefault(groups[name], {})
        own.update((groups[other], None) for other in needed if groups[other] != groups[name])
    return {name: list(before[name]) for name in run_order(before)}


def run_order(inputs: Mapping[str, Iterable[str]]) -> list[str]:
    """Names such that each comes after what it needs, otherwise in the order given."""
    place = {name: number for number, name in enumerate(inputs)}
    users: dict[str, list[str]] = {name: [] for name in inputs}
    waiting = {}
    for name, needed in inputs.items():
        waiting[name] = len(set(needed))
        for other in set(needed):
            users[other].append(name)
    ready = [(place[name], name) for name, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for user in users[name]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, (place[user], user))
    if len(order) != len(place):
        raise ValueError("these nodes depend on each other in a cycle")
    return order


def _by_torch(sketch: Mapping[str, Sequence[str]], supported: set[str]) -> list[list[str]]:
    graph = torch.fx.Graph()
    drawn: dict[str, torch.fx.Node] = {}
    for number, (name, before) in enumerate(sketch.items()):
        args = tuple(drawn[other] for other in before)
        drawn[name] = graph.create_node("call_function", _sketched, args, name=f"n{number}")
    graph.output(())
    names = {node: name for name, node in drawn.items()}
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    partitioner = CapabilityBasedPartitioner(
        module,
        _Support({drawn[name] for name in supported}),
        allows_single_node_partition=True,
    )
    return [[names[node] for node in part.nodes] for part in partitioner.propose_partitions()]


def _sketched(*args: Any) -> Any:
    """Stands for a group of nodes in a sketch; never called."""


class _Support(OperatorSupportBase):  # type: ignore[misc]
    def __init__(self, supported: set[torch.fx.Node]) -> None:
        self._supported = supported

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        return node in self._supported


def _levels(inputs: Inputs, device: set[str]) -> dict[str, int]:
    """How often the side changes from device to host on the longest way to a node.

    In turns the host's level 0, the device's level 0, the host's level 1: no level needs a later
    one. No cut has fewer islands than there are levels.
    """
    levels: dict[str, int] = {}
    for name, needed in inputs.items():
        host = name not in device
        levels[name] = max(
            (levels[other] + (host and other in device) for other in needed), default=0
        )
    return levels


def _by_level(levels: Mapping[str, int], device: set[str]) -> list[list[str]]:
    islands: dict[int, list[str]] = {}
    for name, level in levels.items():
        if name in device:
            islands.setdefault(level, []).append(name)
    return [islands[level] for level in sorted(islands)]
