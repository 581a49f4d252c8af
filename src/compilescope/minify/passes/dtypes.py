"""Floating-point types become float32, all of a type at once."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.minify.engine import Pass
from compilescope.minify.graph.candidate import GraphCandidate, is_float
from compilescope.model.written_graph import Arg, Code, TensorKind, WrittenGraph, mapped_op


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    odd = {
        each.tensor.dtype
        for each in graph.inputs
        if each.tensor is not None and is_float(each.tensor)
    } - {"float32"}
    for dtype in sorted(odd):
        plainer = _in_float32(graph, dtype)
        if (yield GraphCandidate(plainer)):
            graph = plainer


def _in_float32(graph: WrittenGraph, dtype: str) -> WrittenGraph:
    def kind(tensor: TensorKind | None) -> TensorKind | None:
        if tensor is None or tensor.dtype != dtype:
            return tensor
        return replace(tensor, dtype="float32")

    def argument(arg: Arg) -> Arg:
        return Code("torch.float32") if arg == Code(f"torch.{dtype}") else arg

    inputs = tuple(replace(each, tensor=kind(each.tensor)) for each in graph.inputs)
    ops = tuple(replace(mapped_op(op, argument), tensor=kind(op.tensor)) for op in graph.ops)
    return replace(graph, inputs=inputs, ops=ops)


PASS = Pass("dtypes", 55, _propose)
