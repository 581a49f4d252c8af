"""What Inductor's scheduler says when it does not fuse two nodes.

It asks the same of the same pair in several rounds, and of nodes that another round fuses. What
counts is the last word on two nodes that are both left when it generates code.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from compilescope.profiles.calls import UnfusedPair, UserLine

_MOST_OPERATORS = 4
"""Named of a kernel. Chosen: more say no more."""


class FusionNotes:
    """Of all graphs of a process."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, str], str] = {}
        self._pairs: Counter[UnfusedPair] = Counter()

    def refuse(self, first: str, second: str, reason: str) -> None:
        """By the scheduler's names of the nodes."""
        self._refused[first, second] = reason

    def settle(self, nodes: list[Any]) -> None:
        """These are the kernels of a graph."""
        named = {node.get_name(): node for node in nodes}
        for (first, second), reason in self._refused.items():
            if first in named and second in named:
                one, other = named[first], named[second]
                found = UnfusedPair(_operators(one), _operators(other), reason, _line(one))
                self._pairs[found] += 1
        self._refused.clear()

    def pairs(self) -> list[UnfusedPair]:
        """The most frequent first."""
        return [
            UnfusedPair(pair.first, pair.second, pair.reason, pair.at, count)
            for pair, count in self._pairs.most_common()
        ]


def _origins(node: Any) -> list[Any]:
    """The nodes of FX that it computes."""
    inner = [each.node for each in node.get_nodes() if each.node is not None]
    return [origin for each in inner for origin in each.origins]


def _operators(node: Any) -> str:
    """`sum, relu`: from `aten.sum.dim_IntList`."""
    names = dict.fromkeys(
        str(origin.target).removeprefix("aten.").split(".")[0]
        for origin in sorted(_origins(node), key=lambda each: str(each.name))
        if origin.op == "call_function"
    )
    more = ", ..." if len(names) > _MOST_OPERATORS else ""
    return ", ".join(list(names)[:_MOST_OPERATORS]) + more or str(node.get_name())


def _line(node: Any) -> UserLine | None:
    from compilescope.torchapi.graphs.fx import frame_of_trace  # It imports torch.

    frames = (frame_of_trace(origin.meta.get("stack_trace") or "") for origin in _origins(node))
    found = [UserLine(each.file, each.line, each.function) for each in frames if each is not None]
    return min(found, key=lambda at: (at.file, at.line), default=None)
