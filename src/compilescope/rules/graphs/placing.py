"""Gives the nodes of a later stage the lines and names that Dynamo's graph knows them by."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from compilescope.model.graph import Graph, Node, Origins


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
