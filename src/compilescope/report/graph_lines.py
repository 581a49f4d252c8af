"""A graph as lines of text: a node each, and left of them rails that carry values down.

A rail begins at the node that makes a value and ends at the last node that needs it, so every edge
can be followed with a finger:

    ●    x
    │ ●  y
    ● │  sin(x)
    │ ●  cos(y)
    ●─╯  add(sin, cos)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from compilescope.graphs.flops import op_name
from compilescope.model.graph import Graph, Node
from compilescope.rules.hardware.constraint import shown_op
from compilescope.texts import visible

_INPUTS = ("placeholder", "get_attr")
_MOST_RAILS = 12
"""More can't be told apart by eye: the rest of a row is left out. Chosen."""


class Row(NamedTuple):
    """A node: its rails, what it does, what it gives."""

    rails: str
    words: str
    shape: str


def rail_rows(graph: Graph, most: int = 60) -> tuple[list[Row], int]:
    """The rows of the first `most` nodes, and how many nodes are left out."""
    nodes = _ordered(graph.nodes)
    last = {name: at for at, node in enumerate(nodes) for name in node.inputs}
    rails: list[str | None] = []
    rows = []
    for at, node in enumerate(nodes[:most]):
        drawn = _step(rails, node, {name for name in node.inputs if last[name] == at})
        rows.append(Row(drawn, visible(_words(node)), visible(_shape(node))))
        if node.name not in last:
            rails[rails.index(node.name)] = None  # Nothing needs it.
        while rails and rails[-1] is None:
            rails.pop()
    return rows, max(len(nodes) - most, 0)


def _ordered(nodes: Iterable[Node]) -> list[Node]:
    """In order of execution, but each input right before what first needs it."""
    waiting = {node.name: node for node in nodes if node.op in _INPUTS}
    ordered: list[Node] = []
    for node in nodes:
        if node.op in _INPUTS:
            continue
        ordered += [waiting.pop(name) for name in node.inputs if name in waiting]
        if node.op == "output":
            ordered += waiting.values()
            waiting.clear()
        ordered.append(node)
    return [*ordered, *waiting.values()]


def _step(rails: list[str | None], node: Node, ending: set[str]) -> str:
    """Draw a node's row, and leave in `rails` what runs on below it."""
    used = [at for at, name in enumerate(rails) if name in node.inputs]
    ends = [at for at in used if rails[at] in ending]
    place = ends[0] if ends else _free(rails)
    before = list(rails)
    for at in ends:
        rails[at] = None
    rails[place] = node.name
    span = range(min([*used, place]), max([*used, place]) + 1)
    marks = [_mark(at, before, rails, place, used, span) for at in range(len(rails))]
    text = "".join(mark + ("─" if at in span[:-1] else " ") for at, mark in enumerate(marks))
    wide = 2 * _MOST_RAILS
    return text.rstrip() if len(text) <= wide else text[: wide - 1] + "…"


def _free(rails: list[str | None]) -> int:
    if None not in rails:
        rails.append(None)
    return rails.index(None)


def _mark(
    at: int,
    before: list[str | None],
    after: list[str | None],
    place: int,
    used: list[int],
    span: range,
) -> str:
    if at == place:
        return "●"
    if at in used:
        goes_on = after[at] is not None
        if at == span[0]:
            return "├" if goes_on else "╰"
        if at == span[-1]:
            return "┤" if goes_on else "╯"
        return "┼" if goes_on else "┴"
    alive = at < len(before) and before[at] is not None
    if at in span:
        return "│" if alive else "─"
    return "│" if alive else " "


def _words(node: Node) -> str:
    if node.op in _INPUTS:
        return shown_op(node) if node.source else node.name
    if node.op == "output":
        return f"output({', '.join(node.inputs)})"
    name = node.target if node.op == "call_module" else op_name(node)
    given = node.arguments or ", ".join(node.inputs)
    return f"{node.name} = {name}({given})"


def _shape(node: Node) -> str:
    if node.op == "output":
        return ""
    return ", ".join(f"{value.dtype}[{', '.join(map(str, value.shape))}]" for value in node.outputs)
