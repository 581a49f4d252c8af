"""What the reducer shrinks when it shrinks a graph: the graph, its size, and its text.

The size orders candidates: the reducer takes only a smaller one. The text tells them apart.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from compilescope.minify.graph.surgery import outputs_of
from compilescope.minify.script.graph_source import graph_classes, input_source
from compilescope.model.written_graph import Code, Items, Op, WrittenDict, WrittenGraph

_USUAL = ("float32", "int64", "bool")
_FILLS = {"saved": 2, "random": 1, "ones": 0, "zeros": 0}


@dataclass(frozen=True)
class GraphCandidate:
    """Fewer operations first, then fewer inputs and outputs, then plainer and smaller ones."""

    graph: WrittenGraph

    def size(self) -> tuple[int, ...]:
        return self._size

    def text(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        given = [input_source(each) for each in self.graph.inputs if not each.attribute]
        return "\n".join([*graph_classes(self.graph, notes=False), *given])

    @cached_property
    def _size(self) -> tuple[int, ...]:
        graph = self.graph
        tensors = [each for each in graph.inputs if each.tensor is not None]
        kinds = [each.tensor for each in tensors if each.tensor is not None]
        return (
            op_count(graph),
            len(graph.inputs),
            len(outputs_of(graph)),
            sum(each.attribute for each in graph.inputs),
            sum(kind.grad + len(kind.dynamic) for kind in kinds),
            sum(kind.dtype not in _USUAL for kind in kinds) + _odd_dtypes(graph),
            sum(kind.stride is not None for kind in kinds),
            sum(_FILLS[each.fill] for each in tensors),
            sum(math.prod(kind.shape) for kind in kinds),
            sum(_arguments(op) for op in _all_ops(graph)),
            len(self._text),
            zlib.crc32(self._text.encode("utf-8", "surrogatepass")),
        )


def op_count(graph: WrittenGraph) -> int:
    """Those of inner graphs count too."""
    return sum(1 for _ in _all_ops(graph))


def _all_ops(graph: WrittenGraph) -> Iterator[Op]:
    yield from graph.ops
    for inner in graph.graphs.values():
        yield from _all_ops(inner)


def _odd_dtypes(graph: WrittenGraph) -> int:
    args = (arg for op in _all_ops(graph) for arg in (*op.args, *op.kwargs.values()))
    named = [arg.text for arg in args if isinstance(arg, Code)]
    floats = [text for text in named if text.startswith(("torch.float", "torch.bfloat"))]
    return sum(text != "torch.float32" for text in floats)


def _arguments(op: Op) -> int:
    """How much there is to read in a call."""

    def weight(arg: object) -> int:
        if isinstance(arg, Items):
            return 1 + sum(map(weight, arg.items))
        if isinstance(arg, WrittenDict):
            return 1 + sum(weight(k) + weight(v) for k, v in arg.pairs)
        return 0 if arg is None else 1

    return sum(map(weight, op.args)) + sum(1 + weight(arg) for arg in op.kwargs.values())
