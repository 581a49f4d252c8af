"""Makes the graph's inputs fewer and plainer: their owners, strides, numbers and dtypes."""

from __future__ import annotations

from collections.abc import Generator

from msgspec.structs import replace

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.graph.candidate import (
    GraphCandidate,
    cleaned,
    is_float,
    same_kind,
    substituted,
)
from compilescope.record.written_graph import (
    Arg,
    Code,
    Fill,
    Input,
    Ref,
    TensorKind,
    WrittenGraph,
    mapped_op,
)


def _merge_inputs(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Two inputs of the same shape, dtype and device become one."""
    graph = present.graph
    for late in [each.name for each in reversed(present.graph.inputs)]:
        early = _alike(graph, late)
        if early:
            fewer = cleaned(substituted(graph, {late: Ref(early)}))
            if (yield GraphCandidate(fewer)):
                graph = fewer


def _alike(graph: WrittenGraph, name: str) -> str:
    """The first input of the same kind that stands before it."""
    own = graph.input_named(name)
    for each in graph.inputs:
        if own is None or each.name == name:
            return ""
        if same_kind(each.tensor, own.tensor) and each.attribute == own.attribute:
            return each.name
    return ""


def _pass_held_tensors(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Tensors that the module holds as attributes become inputs, as all the others are."""
    graph = present.graph
    held = [each.name for each in graph.inputs if each.attribute]
    if len(held) > 1 and (yield GraphCandidate(_passed(graph, set(held)))):
        return
    for name in held:
        plainer = _passed(graph, {name})
        if (yield GraphCandidate(plainer)):
            graph = plainer


def _passed(graph: WrittenGraph, names: set[str]) -> WrittenGraph:
    inputs = tuple(
        replace(each, attribute=False) if each.name in names else each for each in graph.inputs
    )
    return replace(graph, inputs=inputs)


_PLAIN: dict[str, object] = {"grad": False, "dynamic": (), "stride": None}


def _make_plain(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Inputs become plainer: no gradients, no dynamic sizes, contiguous."""
    graph = present.graph
    for field, plain in _PLAIN.items():
        names = [
            each.name
            for each in graph.inputs
            if each.tensor is not None and getattr(each.tensor, field) != plain
        ]
        if len(names) > 1:
            plainer = _plain(graph, set(names), field)
            if (yield GraphCandidate(plainer)):
                graph = plainer
                continue
        for name in names:
            plainer = _plain(graph, {name}, field)
            if (yield GraphCandidate(plainer)):
                graph = plainer


def _plain(graph: WrittenGraph, names: set[str], field: str) -> WrittenGraph:
    def kind(tensor: TensorKind | None) -> TensorKind | None:
        return None if tensor is None else replace(tensor, **{field: _PLAIN[field]})

    inputs = tuple(
        replace(each, tensor=kind(each.tensor)) if each.name in names else each
        for each in graph.inputs
    )
    return replace(graph, inputs=inputs)


_STEPS: tuple[tuple[Fill, Fill], ...] = (("saved", "random"), ("random", "ones"))


def _replace_numbers(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Saved numbers of an input are replaced by random ones from a seed, and those by ones."""
    graph = present.graph
    for before, after in _STEPS:
        names = [each.name for each in graph.inputs if each.tensor and each.fill == before]
        if len(names) > 1:
            plainer = _filled(graph, set(names), after)
            if (yield GraphCandidate(plainer)):
                graph = plainer
                continue
        for name in names:
            plainer = _filled(graph, {name}, after)
            if (yield GraphCandidate(plainer)):
                graph = plainer


def _filled(graph: WrittenGraph, names: set[str], fill: Fill) -> WrittenGraph:
    def filled(given: Input) -> Input:
        if given.name not in names:
            return given
        return replace(given, fill=fill, saved="")

    return replace(graph, inputs=tuple(filled(each) for each in graph.inputs))


def _make_float32(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    """Floating-point types become float32, all of a type at once."""
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


PASSES = (
    Pass("merged-inputs", 36, _merge_inputs),
    Pass("held-tensors", 40, _pass_held_tensors),
    Pass("plain-tensors", 45, _make_plain),
    Pass("numbers", 50, _replace_numbers),
    Pass("dtypes", 55, _make_float32),
)
