"""Sizes shrink to 1, to 2 or by half, wherever they stand: in shapes of inputs and in arguments."""

from __future__ import annotations

from collections.abc import Callable, Generator

from msgspec.structs import replace

from compilescope.change.minify.engine import Pass
from compilescope.change.minify.graph.candidate import GraphCandidate
from compilescope.record.written_graph import Arg, TensorKind, WrittenGraph, mapped_op

_Change = Callable[[int], int]


def _propose(present: GraphCandidate) -> Generator[GraphCandidate, bool, None]:
    graph = present.graph
    for size in sorted(_sizes(graph), reverse=True):
        now = size
        while now > 1:
            smaller = None
            for wanted in dict.fromkeys((1, 2, now // 2)):
                smaller = yield from _attempt(graph, now, wanted) if wanted < now else _no()
                if smaller is not None:
                    break
            if smaller is None:
                break
            graph, now = smaller, wanted


def _attempt(
    graph: WrittenGraph, size: int, wanted: int
) -> Generator[GraphCandidate, bool, WrittenGraph | None]:
    """Alone, then with the sizes that are made of it, as a row of heads is of one head's size."""

    def alone(number: int) -> int:
        return wanted if number == size else number

    def together(number: int) -> int:
        return number // size * wanted if number and number % size == 0 else number

    seen = {size}
    for change in (alone, together):
        smaller = changed(graph, change)
        moved = {each for each in _sizes(graph) if change(each) != each}
        if change is together and moved <= seen:
            continue
        if smaller is not None and (yield GraphCandidate(smaller)):
            return smaller
    return None


def _no() -> Generator[GraphCandidate, bool, None]:
    return
    yield


def _sizes(graph: WrittenGraph) -> set[int]:
    """Of inputs: the others follow from them."""
    return {
        size for each in graph.inputs if each.tensor is not None for size in each.tensor.shape
    } - {0, 1}


def changed(graph: WrittenGraph, change: _Change) -> WrittenGraph | None:
    def number(arg: Arg) -> Arg:
        whole = isinstance(arg, int) and not isinstance(arg, bool)
        return change(arg) if whole and arg > 1 else arg  # type: ignore[operator, arg-type]

    def kind(tensor: TensorKind | None) -> TensorKind | None:
        if tensor is None:
            return None
        shape = tuple(change(size) for size in tensor.shape)
        return replace(tensor, shape=shape, stride=_packed(tensor, shape))

    inputs = tuple(replace(each, tensor=kind(each.tensor)) for each in graph.inputs)
    ops = tuple(
        replace(
            mapped_op(op, number),
            tensor=kind(op.tensor),
            number=number(op.number),
        )
        for op in graph.ops
    )
    return replace(graph, inputs=inputs, ops=ops)


def _packed(tensor: TensorKind, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Dimensions keep their order in memory, and those of stride 0 keep that."""
    if tensor.stride is None or shape == tensor.shape:
        return tensor.stride
    made = [0] * len(shape)
    step = 1
    for dim in sorted(range(len(shape)), key=lambda at: (tensor.stride[at], -at)):  # type: ignore[index]
        if tensor.stride[dim]:
            made[dim] = step
            step *= max(shape[dim], 1)
    return tuple(made)


PASS = Pass("shapes", 60, _propose)
