"""The portable graph with all that is known of each node: operators, arguments, the user's line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import torch
from torch.fx import GraphModule

from compilescope.instrument.torchapi.calls.aten import with_calls
from compilescope.instrument.torchapi.graphs.fx import origins, portable
from compilescope.instrument.torchapi.graphs.values import has_symbols, leaving_no_trace
from compilescope.record.graph import Graph, Node, Origins
from compilescope.record.graphs.user_lines import user_lines
from compilescope.record.stack import Frame


class DynamoLines:
    """What a Dynamo graph knows of the user's program, for the graphs that are made of it later."""

    def __init__(self, graph: Graph, called_at: Frame | None) -> None:
        lines = user_lines(graph, called_at)
        self.called_at = called_at
        self._inputs = [node.source for node in graph.nodes if node.op == "placeholder"]
        self._by_name = lines
        self._by_alias = {
            node.alias: lines[node.name]
            for node in graph.nodes
            if node.alias and node.name in lines
        }

    def source(self, live: torch.fx.Node) -> str:
        """What the user passed, for an input of a later graph."""
        told = live.meta.get("desc")
        number = getattr(told, "idx", None) if type(told).__name__ == "PlainAOTInput" else None
        if type(number) is int and number < len(self._inputs):
            return self._inputs[number]
        return ""

    def of(self, name: str, sources: Origins) -> Frame | None:
        """The line of a node of a later graph, by torch's notes of where it came from."""
        for source in sources.nodes.get(name, ()):
            if source in self._by_name:
                return self._by_name[source]
        alias = sources.gradients.get(name, "")
        return self._by_alias.get(alias) or self._by_name.get(alias)


def judged_graph(module: GraphModule, *, operators: bool = True, memory: bool = True) -> Graph:
    """The portable graph with what constraints look at, and nothing of it left behind in torch.

    `memory` asks for what autograd keeps; of dynamic sizes no bytes would come.
    """
    saved = memory and torch.is_grad_enabled() and not has_symbols(module)
    with leaving_no_trace(module):
        graph = portable(module, saved=saved)
        return with_calls(graph, module) if operators else graph


def describe_graph(module: GraphModule, lines: DynamoLines | None = None) -> Graph:
    graph = with_calls(portable(module), module)
    sources = origins(module) if lines is not None else Origins()
    nodes = tuple(
        msgspec.structs.replace(
            node,
            arguments=_arguments(live),
            frame=_frame(node, lines, sources),
            source=node.source or (lines.source(live) if lines is not None else ""),
        )
        for node, live in zip(graph.nodes, module.graph.nodes, strict=True)
    )
    return Graph(nodes, graph.stacks)


def with_arguments(graph: Graph, module: GraphModule) -> Graph:
    """The same with what each node is called with."""
    pairs = zip(graph.nodes, module.graph.nodes, strict=True)
    return Graph(
        tuple(msgspec.structs.replace(node, arguments=_arguments(live)) for node, live in pairs),
        graph.stacks,
    )


def _frame(node: Node, lines: DynamoLines | None, sources: Origins) -> Frame | None:
    own = node.frame
    if lines is None or (own is not None and own.origin != "torch"):
        return own
    return lines.of(node.name, sources) or own


def _arguments(node: torch.fx.Node) -> str:
    """As torch prints them, so that what reads printed graphs reads this."""
    if not node.op.startswith("call_"):
        return ""
    named = [f"{name}={_shown(value)}" for name, value in node.kwargs.items()]
    return ", ".join([*map(_shown, node.args), *named])


def _shown(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return str(value.name)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_shown, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {_shown(v)}' for k, v in value.items())}}}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    return str(value)
