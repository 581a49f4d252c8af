"""The user's line of every node of a graph, at whichever stage.

A node of a later stage has the line and the name that Dynamo's graph knows it by.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compilescope.record.graph import Graph, Node, Origins
from compilescope.record.stack import Frame

_INPUTS = ("placeholder", "get_attr")


def user_lines(graph: Graph, called_at: Frame | None = None) -> dict[str, Frame]:
    """Node -> its line; never one of torch's own.

    An input has the line of its first user: where it first came to Dynamo's notice may be any
    wrapper. A node without a line came from where its inputs did, or from what ran before it.
    `called_at` is for nodes of which nothing at all is known.
    """
    first_use: dict[str, Frame] = {}
    for node in graph.nodes:
        own = _own(node)
        if own is not None and node.op not in _INPUTS:
            for name in node.inputs:
                first_use.setdefault(name, own)
    lines: dict[str, Frame] = {}
    last = called_at
    for node in graph.nodes:
        own = _own(node)
        if node.op in _INPUTS:
            line = first_use.get(node.name) or own or called_at
        else:
            sources = (lines[name] for name in node.inputs if name in lines)
            line = own or next(sources, None) or first_use.get(node.name) or last
            last = line or last
        if line is not None:
            lines[node.name] = line
    return lines


def line_of(node: Node, graph: Graph) -> Frame | None:
    """As `user_lines` for one node; most know it themselves."""
    own = _own(node) if node.op not in _INPUTS else None
    return own or user_lines(graph).get(node.name)


def _own(node: Node) -> Frame | None:
    return node.frame if node.frame is not None and node.frame.origin != "torch" else None


def placed(graph: Graph, origins: Origins, positions: Mapping[str, int], caught: Graph) -> Graph:
    """`positions` says which of Dynamo's inputs an input is; `caught` is Dynamo's graph."""
    inputs = [node for node in caught.nodes if node.op == "placeholder"]
    by_name = {node.name: node for node in caught.nodes}
    by_alias = {node.alias or node.name: node for node in caught.nodes}

    def of(node: Node) -> Node:
        if node.op == "placeholder":
            position = positions.get(node.name)
            if position is None or position >= len(inputs):
                return node
            return msgspec.structs.replace(node, source=inputs[position].source)
        if node.frame is not None and node.frame.origin != "torch":
            return node
        names = origins.nodes.get(node.name, ())
        known = [by_name[name] for name in names if name in by_name]
        alias = origins.gradients.get(node.name)
        if alias in by_alias:
            known.append(by_alias[alias])
        frame = next((each.frame for each in known if each.frame is not None), node.frame)
        return msgspec.structs.replace(node, frame=frame)

    return msgspec.structs.replace(graph, nodes=tuple(map(of, graph.nodes)))
