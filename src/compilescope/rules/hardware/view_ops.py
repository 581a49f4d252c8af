"""Operators that make no memory of their own: views of what they are given, and in-place ones;
and the strides that come of it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache

from compilescope.model.graph import Node, TensorInfo
from compilescope.rules.hardware.op_names import SCATTERED_COPIES, canonical
from compilescope.rules.hardware.sizes import (
    Size,
    Sum,
    at_least,
    equal,
    multiply,
    read_size,
    read_stride,
)

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
def is_copy(op: str) -> bool:
    """Does it take any strides, since it copies, or looks at no number at all (`zeros_like`)?"""
    name = _name(op)
    return (
        name.removesuffix("_") in _COPIES
        or name.endswith("_like")
        or name.startswith(("new_", "sym_"))
    )


@lru_cache(maxsize=8192)
def is_product(op: str) -> bool:
    """A matrix product, which takes each of its operands transposed too."""
    return _name(op) in _PRODUCTS


@lru_cache(maxsize=8192)
def is_attention(op: str) -> bool:
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
