"""Operations that are wrong only together: which of them matter, and where the same ones recur."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch.fx import Node

from compilescope.diff.localize.graph_parts.anatomy import Anatomy


def between(computing: Sequence[Node]) -> list[Node]:
    """Those on a way from the first to the last."""
    inside = set(computing)
    sources = {node: sources_among(node, inside) for node in computing}
    after = {computing[0]}
    for node in computing[1:]:
        if sources[node] & after:
            after.add(node)
    before = {computing[-1]}
    for node in reversed(computing):
        if node in before:
            before |= sources[node]
    return [node for node in computing if node in after and node in before]


def sources_among(node: Node, inside: set[Node]) -> set[Node]:
    """What it uses of these, also by way of parts of tuples and numbers."""
    found: set[Node] = set()
    waiting, seen = list(node.all_input_nodes), set()
    while waiting:
        other = waiting.pop()
        if other in seen:
            continue
        seen.add(other)
        if other in inside:
            found.add(other)
        elif other.op.startswith("call_") and _passes_on(other):
            waiting += other.all_input_nodes
    return found


def _passes_on(node: Node) -> bool:
    return getattr(node.target, "__name__", "") == "getitem"


def alike(region: Sequence[Node], nodes: Iterable[Node]) -> list[list[Node]]:
    """Groups of nodes with the same targets, connected in the same way, in order."""
    last, wanted = region[-1], set(region)
    order = {node: at for at, node in enumerate(nodes)}
    groups = []
    for node in order:
        if node is last or node.op != last.op or node.target != last.target:
            continue
        found = {last: node}
        if _matches(last, node, wanted, found) and len(found) == len(region):
            group = [found[one] for one in region]
            if all(one in order for one in group) and len(set(group)) == len(group):
                groups.append(sorted(group, key=order.__getitem__))
    return groups


def _matches(one: Node, other: Node, wanted: set[Node], found: dict[Node, Node]) -> bool:
    mine, theirs = one.all_input_nodes, other.all_input_nodes
    if len(mine) != len(theirs):
        return False
    for a, b in zip(mine, theirs, strict=True):
        inner = a in wanted or (_passes_on(a) and bool(sources_among(a, wanted)))
        if not inner:
            continue
        if a.op != b.op or a.target != b.target or found.get(a, b) is not b:
            return False
        if a in wanted:
            found[a] = b
        if not _matches(a, b, wanted, found):
            return False
    return True


def first_causes(wrong: set[Node], anatomy: Anatomy) -> list[Node]:
    """Those that are wrong though nothing that they are given is."""
    found: list[Node] = []
    computing = set(anatomy.computing(anatomy.nodes))
    for node in anatomy.nodes:
        if node not in wrong:
            continue
        owner = node
        while owner not in computing and owner.all_input_nodes:
            owner = owner.all_input_nodes[0]
        given = _values_before(owner)
        if not given & wrong and owner not in found:
            found.append(owner)
    return found


def _values_before(node: Node) -> set[Node]:
    """Its inputs; for a number or a tuple what that was made of."""
    found: set[Node] = set()
    waiting = list(node.all_input_nodes)
    while waiting:
        other = waiting.pop()
        if other in found:
            continue
        found.add(other)
        if _passes_on(other):
            waiting += other.all_input_nodes
    return found
