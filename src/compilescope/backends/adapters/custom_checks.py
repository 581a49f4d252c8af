"""Constraints that a user wrote as plain functions of live FX nodes.

They need the live graph. Where only a portable graph is at hand, each counts as "cannot tell".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from torch.fx import GraphModule

from compilescope.knowledge.rules.hardware.constraint import Breach, Constraint, is_op
from compilescope.record.graph import Graph, Node

CustomCheck = Callable[[Any], object]
"""Is given each `torch.fx.Node`, and returns what is wrong with it, or None."""
RULE = "custom"


class UnaskedCheck(Constraint):
    """Stands for such a function where there is only a portable graph: nobody can tell."""

    id = RULE

    def __init__(self, check: CustomCheck) -> None:
        self._words = f"{name_of(check)} checks torch's own nodes, which this graph does not have"

    def check_node(self, node: Node) -> Iterable[Breach]:
        if is_op(node) and not (node.no_tensor and not node.calls):
            yield self.cannot_tell(node, self._words, "unknown")


class FoundBreaches(Constraint):
    """What was found already, for those who run constraints."""

    id = RULE

    def __init__(self, found: Iterable[Breach]) -> None:
        self._found = tuple(found)

    def check(self, graph: Graph) -> Iterable[Breach]:
        return self._found


def custom_breaches(
    checks: Sequence[CustomCheck], module: GraphModule, graph: Graph
) -> list[Breach]:
    """What they say of the nodes of a live graph; `graph` is its portable form."""
    if not checks:
        return []
    nodes = {node.name: node for node in graph.nodes}
    found = []
    for live in module.graph.nodes:
        if live.op == "output":
            continue
        for check in checks:
            breach = _ask(check, live, nodes[live.name])
            if breach is not None:
                found.append(breach)
    return found


def _ask(check: CustomCheck, live: Any, node: Node) -> Breach | None:
    filing = UnaskedCheck(check)
    try:
        said = check(live)
    except Exception as error:  # The border to a plugin.
        why = f"{name_of(check)} failed with {type(error).__name__}: {error}"
        return filing.cannot_tell(node, why, "unknown")
    if said is None or isinstance(said, Breach):
        return said
    if isinstance(said, str):
        return filing.breach(node, found=said, allowed=f"what {name_of(check)} accepts")
    why = f"{name_of(check)} returned {said!r}; it must return a sentence or None"
    return filing.cannot_tell(node, why, "a sentence or None")


def name_of(check: CustomCheck) -> str:
    return str(getattr(check, "__name__", type(check).__name__))
