"""The tensors that each node of a graph takes and makes, whichever stage the graph is of."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.model.graph import Call, Graph, Node, TensorInfo
from compilescope.rules.hardware.constraint import is_op
from compilescope.rules.hardware.sizes import Size
from compilescope.rules.hardware.view_ops import is_attention, is_copy, is_product, is_view_op

_PICK = "_operator.getitem"
Look = tuple[tuple[Size, ...], tuple[Size, ...]]
"""A shape and its strides."""


def computing(node: Node) -> tuple[Call, ...] | None:
    """The operators behind a node that are no views; None where they are not known."""
    if node.calls is None or node.graphs or not is_op(node):
        return None
    return tuple(call for call in node.calls if not is_view_op(call.op))


def made(node: Node) -> tuple[TensorInfo, ...]:
    """What comes into being at a node: an input, or results that somebody reads."""
    calls = computing(node)
    if calls is None or (calls and not any(call.outputs for call in calls)):
        return tuple(t for number, t in enumerate(node.outputs) if number not in node.unasked)
    if len(calls) == 1 == len(node.calls or ()) and len(calls[0].outputs) == len(node.outputs):
        results = calls[0].outputs
        if _is_clone(calls[0]):
            return ()
        return tuple(t for at, t in enumerate(results) if at not in node.unasked and _holds(t))
    read = {_key(tensor) for tensor in node.outputs}
    found: dict[TensorInfo, None] = {}
    for call in reversed(node.calls or ()):
        if not is_view_op(call.op) and not _is_clone(call):
            for number, result in enumerate(call.outputs):
                if _holds(result) and (_key(result) in read or (not found and not number)):
                    found[result] = None
        read |= {_key(tensor) for tensor in call.inputs}
    return tuple(reversed(found))


def _is_clone(call: Call) -> bool:
    """The same value once more: it was judged where it was made. A broadcast one grows."""
    if not call.op.startswith("aten.clone.") or not call.inputs:
        return False
    return 0 not in (call.inputs[0].stride or ())


def _holds(tensor: TensorInfo) -> bool:
    """Has it any elements? torch passes empty tensors where a kernel reserves nothing."""
    return 0 not in tensor.shape


def is_view_node(node: Node) -> bool:
    """Does it only look elsewhere at memory that is there?"""
    return bool(node.calls) and all(is_view_op(call.op) for call in node.calls or ())


def _key(tensor: TensorInfo) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.stride


def laid_out(node: Node) -> Iterator[tuple[TensorInfo, list[Look]]]:
    """The tensors whose strides matter at a node, each with the looks at it that will do.

    That is what its operators read. How a result lies is its kernel's own choice, unless it is made
    from nothing: then it is the program's.
    """
    calls = computing(node)
    if calls is None:
        for tensor in node.outputs if is_op(node) else ():
            yield tensor, _plain(tensor)
        return
    reading = [call for call in calls if call.inputs]
    for tensor in () if reading else made(node):
        yield tensor, _plain(tensor)
    for call in reading:
        for tensor in () if is_copy(call.op) else call.inputs:
            yield tensor, _looks(call, tensor)


def _plain(tensor: TensorInfo) -> list[Look]:
    return [(tensor.shape, tensor.stride)] if tensor.stride is not None else []


def _looks(call: Call, tensor: TensorInfo) -> list[Look]:
    looks = _plain(tensor)
    if not looks or not tensor.shape:
        return looks
    shape, stride = looks[0]
    if is_attention(call.op):
        # Batch, head and position are addressed by stride; the last dimension is a row.
        return [(shape[-1:], stride[-1:])]
    if is_product(call.op):
        shape, stride = _without_broadcast(shape, stride)
        looks = [(shape, stride)]
        if len(shape) > 1:
            turned = (*shape[:-2], shape[-1], shape[-2])
            looks.append((turned, (*stride[:-2], stride[-1], stride[-2])))
    elif any(result.shape == shape for result in call.outputs):
        looks = [_without_broadcast(shape, stride)]
    return looks


def _without_broadcast(shape: tuple[Size, ...], stride: tuple[Size, ...]) -> Look:
    """A dimension of stride 0 is one row that is read again: as `x + bias` reads the bias."""
    kept = tuple(1 if step == 0 else size for size, step in zip(shape, stride, strict=True))
    return kept, stride


def note_unasked(graph: Graph) -> Graph:
    """The same graph, in which operators with several results say which of them nobody reads."""
    picks: dict[str, list[Node]] = {}
    for node in graph.nodes:
        if node.target == _PICK and node.inputs:
            picks.setdefault(node.inputs[0], []).append(node)
    several = {node.name for node in graph.nodes if len(node.outputs) > 1 and node.name in picks}
    if not several:
        return graph
    asked, whole = _asked(graph), _taken_whole(graph)
    nodes = tuple(
        msgspec.structs.replace(node, unasked=_unread(node, picks[node.name], asked))
        if node.name in several and node.name not in whole
        else node
        for node in graph.nodes
    )
    return msgspec.structs.replace(graph, nodes=nodes)


def _asked(graph: Graph) -> set[str]:
    """Values that an operator or the caller reads."""
    if not graph.nodes or graph.nodes[-1].op != "output":
        return {node.name for node in graph.nodes}  # Read from text: it may return any of them.
    found: set[str] = set()
    for node in reversed(graph.nodes):
        skipped = node.unasked if node.op == "output" else ()
        if node.name in found or not (node.target == _PICK or is_view_node(node)):
            found.update(name for at, name in enumerate(node.inputs) if at not in skipped)
    return found


def _taken_whole(graph: Graph) -> set[str]:
    """Values that something other than a pick takes: then all of it is read."""
    return {
        name
        for node in graph.nodes
        if node.target != _PICK
        for at, name in enumerate(node.inputs)
        if node.op != "output" or at not in node.unasked
    }


def _unread(node: Node, picks: list[Node], asked: set[str]) -> tuple[int, ...]:
    """By what the picks give: which number a pick takes is not noted."""
    read = [_key(tensor) for pick in picks if pick.name in asked for tensor in pick.outputs]
    return tuple(at for at, tensor in enumerate(node.outputs) if _key(tensor) not in read)
