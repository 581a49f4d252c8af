"""Fills in what the text of a graph only implies: inputs, results and calls of its nodes.

A graph that was read from text names its nodes' inputs only in their arguments, and the results of
an operator that gives several only where they are picked. A node of an ATen graph is its own call.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import msgspec

from compilescope.record.graph import Call, Graph, Node, TensorInfo
from compilescope.record.python_text import parse_expression

_WORD = re.compile(r"[A-Za-z_]\w*")
_PICK = "_operator.getitem"
_NO_LIBRARY = ("torch", "_operator", "builtins", "math", "higher_order")


def complete(graph: Graph) -> Graph:
    """The same graph where there is nothing to fill in."""
    nodes = graph.nodes
    if any(node.arguments and not node.inputs for node in nodes):
        nodes = _with_inputs(nodes)
    if any(_lacks_results(node) for node in nodes):
        nodes = _with_results(nodes)
    if any(node.calls is None and is_overload(node) for node in nodes):
        nodes = _with_calls(nodes)
    if any(node.graphs for node in nodes):
        nodes = tuple(
            msgspec.structs.replace(node, graphs=tuple(map(complete, node.graphs)))
            if node.graphs
            else node
            for node in nodes
        )
    return graph if nodes is graph.nodes else Graph(nodes, graph.stacks)


def is_overload(node: Node) -> bool:
    """Is its target one ATen operator, or one of another library: `aten.mm.default`?"""
    parts = node.target.removeprefix("torch.ops.").split(".")
    return node.op == "call_function" and len(parts) == 3 and parts[0] not in _NO_LIBRARY


def _with_inputs(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    known: set[str] = set()
    done = []
    for node in nodes:
        if node.arguments and not node.inputs:
            names = dict.fromkeys(_WORD.findall(node.arguments))
            used = tuple(name for name in names if name in known)
            node = msgspec.structs.replace(node, inputs=used)
        known.add(node.name)
        done.append(node)
    return tuple(done)


def _lacks_results(node: Node) -> bool:
    return not node.outputs and not node.no_tensor and is_overload(node)


def _with_results(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    picked: dict[str, list[TensorInfo]] = {}
    for node in nodes:
        if node.target == _PICK and node.inputs:
            picked.setdefault(node.inputs[0], []).extend(node.outputs)
    return tuple(
        msgspec.structs.replace(node, outputs=tuple(picked[node.name]))
        if _lacks_results(node) and picked.get(node.name)
        else node
        for node in nodes
    )


def _with_calls(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    made: dict[str, tuple[TensorInfo, ...]] = {}
    done = []
    for node in nodes:
        if node.calls is None and is_overload(node):
            inputs = tuple(tensor for name in node.inputs for tensor in made.get(name, ()))
            op = node.target.removeprefix("torch.ops.")
            call = Call(op, inputs, node.outputs, _constants(node.arguments))
            node = msgspec.structs.replace(node, calls=(call,))
        made[node.name] = node.outputs
        done.append(node)
    return tuple(done)


def _constants(arguments: str) -> dict[str, Any]:
    """Those that were given by name; the names of the others are the operator's to know."""
    if "=" not in arguments:
        return {}
    try:
        tree = parse_expression(f"f({arguments})")
    except SyntaxError:
        return {}
    named: dict[str, Any] = {}
    for keyword in tree.keywords if isinstance(tree, ast.Call) else ():
        try:
            if keyword.arg:
                named[keyword.arg] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return named
