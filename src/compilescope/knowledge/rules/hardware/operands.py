"""The tensors that each node of a graph takes and makes, whichever stage the graph is of."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from compilescope.knowledge.rules.hardware.constraint import is_op
from compilescope.knowledge.rules.hardware.op_names import SCATTERED_COPIES, canonical
from compilescope.knowledge.rules.hardware.sizes import (
    Size,
    Sum,
    at_least,
    equal,
    multiply,
    read_size,
    read_stride,
)
from compilescope.record.graph import Call, Graph, Node, TensorInfo

PICK = "_operator.getitem"
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
    read = {tensor_key(tensor) for tensor in node.outputs}
    found: dict[TensorInfo, None] = {}
    for call in reversed(node.calls or ()):
        if not is_view_op(call.op) and not _is_clone(call):
            for number, result in enumerate(call.outputs):
                if _holds(result) and (tensor_key(result) in read or (not found and not number)):
                    found[result] = None
        read |= {tensor_key(tensor) for tensor in call.inputs}
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


def tensor_key(tensor: TensorInfo) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.stride


class ReadTensor(NamedTuple):
    """A tensor whose strides matter at a node."""

    tensor: TensorInfo
    looks: list[Look]
    """Those that will do."""
    any_order: bool = False
    """Its reader finds each row, or each matrix, by a stride: their order is nothing to it."""
    reader: Call | None = None
    """None for what is made from nothing, or where the operators are not known."""


def laid_out(node: Node) -> Iterator[ReadTensor]:
    """The tensors whose strides matter at a node.

    That is what its operators read. How a result lies is its kernel's own choice, unless it is made
    from nothing: then it is the program's.
    """
    calls = computing(node)
    if calls is None:
        for tensor in node.outputs if is_op(node) else ():
            yield ReadTensor(tensor, _plain(tensor))
        return
    reading = [call for call in calls if call.inputs]
    for tensor in () if reading else made(node):
        yield ReadTensor(tensor, _plain(tensor))
    for call in reading:
        for tensor in () if _is_copy(call.op) else call.inputs:
            by_stride = _is_product(call.op) or _is_attention(call.op)
            yield ReadTensor(tensor, _looks(call, tensor), by_stride, call)


def _plain(tensor: TensorInfo) -> list[Look]:
    return [(tensor.shape, tensor.stride)] if tensor.stride is not None else []


def _looks(call: Call, tensor: TensorInfo) -> list[Look]:
    looks = _plain(tensor)
    if not looks or not tensor.shape:
        return looks
    shape, stride = looks[0]
    if _is_attention(call.op):
        # Batch, head and position are addressed by stride; the last dimension is a row.
        return [(shape[-1:], stride[-1:])]
    if _is_product(call.op):
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
        if node.target == PICK and node.inputs:
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
        if node.name in found or not (node.target == PICK or is_view_node(node)):
            found.update(name for at, name in enumerate(node.inputs) if at not in skipped)
    return found


def _taken_whole(graph: Graph) -> set[str]:
    """Values that something other than a pick takes: then all of it is read."""
    return {
        name
        for node in graph.nodes
        if node.target != PICK
        for at, name in enumerate(node.inputs)
        if node.op != "output" or at not in node.unasked
    }


def _unread(node: Node, picks: list[Node], asked: set[str]) -> tuple[int, ...]:
    """By what the picks give: which number a pick takes is not noted."""
    read = [tensor_key(tensor) for pick in picks if pick.name in asked for tensor in pick.outputs]
    return tuple(at for at, tensor in enumerate(node.outputs) if tensor_key(tensor) not in read)


FORMATS: dict[str, tuple[int, tuple[int, ...]] | None] = {
    "contiguous": None,
    "channels_last": (4, (0, 2, 3, 1)),
    "channels_last_3d": (5, (0, 2, 3, 4, 1)),
}
"""The rank that a memory format is for, and its dimensions from the outermost to the innermost."""
_MOST_ELEMENTS = 10_000
"""Whose places are counted one by one. Chosen: it bounds time and memory; beyond, the answer is
that it is not known."""
_VIEWS = frozenset(
    {
        "alias", "as_strided", "broadcast_to", "chunk", "detach", "diagonal", "expand",
        "expand_as", "hsplit", "imag", "lift", "lift_fresh", "mH", "mT", "matrix_H", "movedim",
        "moveaxis", "narrow", "numpy_T", "permute", "real", "select", "slice", "split",
        "split_with_sizes", "squeeze", "swapaxes", "swapdims", "t", "tensor_split", "transpose",
        "unbind", "unflatten", "unfold", "unsafe_chunk", "unsafe_split",
        "unsafe_split_with_sizes", "unsqueeze", "view", "view_as", "view_as_complex",
        "view_as_real", "vsplit", "_neg_view", "_conj", "_reshape_alias", "_unsafe_view",
        "_add_batch_dim", "T", "H", "data", "requires_grad_", "getitem", "getattr",
    }
)  # fmt: skip
# They copy only where they must.
_PERHAPS = frozenset(
    {"contiguous", "to", "type", "float", "half", "double", "bfloat16", "reshape", "reshape_as",
     "flatten", "ravel", "type_as", "cpu", "cuda", "dropout", "conj", "resolve_conj"}
)  # fmt: skip

# Views that give something new to judge: another number format, or a literal of the program's.
_NEW = frozenset(
    {"imag", "real", "view_as_complex", "view_as_real", "_conj", "_neg_view", "lift", "lift_fresh"}
)
# They take any strides: to move data is what they are for.
_COPIES = frozenset(
    {"clone", "contiguous", "copy", "_to_copy", "to", "fill", "zero", "lift_fresh",
     "lift_fresh_copy", "_assert_tensor_metadata", *SCATTERED_COPIES}
)  # fmt: skip
_PRODUCTS = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "matmul", "linear", "_int_mm",
     "_scaled_mm", "_grouped_mm", "_addmm_activation", "_linear_pointwise"}
)  # fmt: skip
_ATTENTION = re.compile(r"scaled_dot_product|_attention_(?:forward|backward)|flex_attention")


@lru_cache(maxsize=8192)
def is_view_op(op: str) -> bool:
    """Does it only describe anew what lies in memory, in the same number format?"""
    name = _name(op)
    if name.endswith("_") and name[:-1] in _VIEWS:
        return True  # `unsqueeze_` changes how a tensor is described, and nothing in memory.
    return name in _VIEWS and name not in _NEW and not op.endswith("view.dtype")


@lru_cache(maxsize=8192)
def _is_copy(op: str) -> bool:
    """Does it take any strides, since it copies, or looks at no number at all (`zeros_like`)?"""
    name = _name(op)
    return (
        name.removesuffix("_") in _COPIES
        or name.endswith("_like")
        or name.startswith(("new_", "sym_"))
    )


@lru_cache(maxsize=8192)
def _is_product(op: str) -> bool:
    """A matrix product, which takes each of its operands transposed too."""
    return _name(op) in _PRODUCTS


@lru_cache(maxsize=8192)
def _is_attention(op: str) -> bool:
    return _ATTENTION.search(op) is not None


@lru_cache(maxsize=8192)
def makes_memory(op: str) -> bool:
    """Does an ATen operator give tensors of its own?"""
    name = _name(op)
    return name not in _VIEWS and not _in_place(name) and not op.endswith(".out")


def shares_memory(node: Node, given: TensorInfo | None) -> bool | None:
    """Does a node give a view of what it was given first? None where that is not known."""
    name = _name(node.target)
    if name in _VIEWS or _in_place(name):
        return True
    if name not in _PERHAPS:
        return False
    result = node.outputs[0] if node.outputs else None
    if given is None or result is None:
        return None
    if (given.dtype, given.device) != (result.dtype, result.device):
        return False
    if name in ("contiguous", "reshape", "reshape_as", "flatten", "ravel"):
        return True if is_dense(given, "contiguous") else None
    return True


def _name(op: str) -> str:
    parts = canonical(op).split(".")
    return parts[1] if len(parts) > 1 and parts[0] != "torch" else parts[-1]


def _in_place(name: str) -> bool:
    return (name.endswith("_") and not name.endswith("__")) or name == "setitem"


# What strides say: is a tensor dense in some order, do elements of it share memory?


def fits_format(tensor: TensorInfo, form: str) -> bool:
    """Is the format for tensors of this rank?"""
    order = FORMATS[form]
    return order is None or order[0] == len(tensor.shape)


def is_dense(tensor: TensorInfo, form: str) -> bool | None:
    """Are these the strides of that memory format? None where it depends on a size, or unknown."""
    if tensor.stride is None:
        return None
    return _is_dense(tensor.shape, tensor.stride, form)


@lru_cache(maxsize=16384)
def _is_dense(shape: tuple[Size, ...], stride: tuple[Size, ...], form: str) -> bool | None:
    order = FORMATS[form]
    dims: Sequence[int] = range(len(shape))
    if order is not None:
        if len(shape) != order[0]:
            return False
        dims = order[1]
    if 0 in shape:
        return True
    expected = read_size(1)
    sure = True
    for dim in reversed(dims):
        if shape[dim] == 1:
            continue
        same = equal(read_stride(stride[dim], shape), expected)
        if same is False:
            return False
        sure = sure and bool(same)
        try:
            expected = multiply(expected, read_size(shape[dim]))
        except ValueError:  # Too long a formula.
            return None
    return True if sure else None


def has_dense_rows(tensor: TensorInfo, form: str) -> bool | None:
    """Is its innermost dimension, as the format orders them, dense, and no element shared?

    Then each row is one piece of memory, wherever the rows begin. None where it is not known.
    """
    order = FORMATS[form]
    if tensor.stride is None or not fits_format(tensor, form):
        return None if tensor.stride is None else False
    dims: Sequence[int] = range(len(tensor.shape)) if order is None else order[1]
    inner = next((dim for dim in reversed(dims) if tensor.shape[dim] != 1), None)
    if inner is None:
        return True
    dense = equal(read_stride(tensor.stride[inner], tensor.shape), read_size(1))
    shared = overlaps(tensor)
    if dense is False or shared:
        return False
    return True if dense and shared is False else None


def has_rows_in_order(tensor: TensorInfo, form: str) -> bool | None:
    """Does each dimension, as the format orders them, step at least as far as the one within it?

    Of a tensor with dense rows: else they lie in another order than it has them. None where it is
    not known.
    """
    if tensor.stride is None or not fits_format(tensor, form):
        return None if tensor.stride is None else False
    order = FORMATS[form]
    dims: Sequence[int] = range(len(tensor.shape)) if order is None else order[1]
    steps = [read_stride(tensor.stride[d], tensor.shape) for d in dims if tensor.shape[d] != 1]
    pairs = [pair for pair in pairwise(steps) if not at_least(*pair)]
    if any(at_least(inner, outer) for outer, inner in pairs):
        return False
    return None if pairs else True


def overlaps(tensor: TensorInfo) -> bool | None:
    """Do several of its elements share memory?"""
    if tensor.stride is None:
        return None
    return _overlaps(tensor.shape, tensor.stride)


@lru_cache(maxsize=16384)
def _overlaps(shape: tuple[Size, ...], stride: tuple[Size, ...]) -> bool | None:
    dims = [(step, size) for size, step in zip(shape, stride, strict=True) if size != 1]
    if any(size == 0 for _, size in dims):
        return False
    if any(step == 0 for step, _ in dims):
        return True
    known = [(s, n) for s, n in dims if isinstance(s, int) and isinstance(n, int)]
    if len(known) != len(dims):
        if any(_is_dense(shape, stride, form) for form in FORMATS):
            return False
        formulas = [(read_stride(step, shape), read_size(size)) for step, size in dims]
        return False if _lie_apart(formulas) else None
    if any(step < 0 or size < 0 for step, size in known):
        return None  # No tensor: somebody wrote it into the graph.
    reach = elements = 1
    apart = True
    for step, size in sorted(known):
        apart = apart and step >= reach
        reach += (size - 1) * step
        elements *= size
    if apart or elements > _MOST_ELEMENTS:
        return False if apart else None
    ranges = (range(0, size * step, step) for step, size in known)
    places = [sum(place) for place in itertools.product(*ranges)]
    return len(set(places)) < len(places)


def _lie_apart(dims: list[tuple[Sum, Sum]]) -> bool:
    """Is there an order in which each step is surely beyond all that the steps before it reach?"""
    reach = read_size(1)
    while dims:
        for step, size in dims:
            try:
                beyond = multiply(step, size)
            except ValueError:  # Too long a formula.
                return False
            rest = [dim for dim in dims if dim != (step, size)]
            if at_least(step, reach) and all(at_least(other, beyond) for other, _ in rest):
                dims, reach = rest, beyond
                break
        else:
            return False
    return True
