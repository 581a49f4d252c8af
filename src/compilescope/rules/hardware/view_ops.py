"""Operators that make no memory of their own: views of what they are given, and in-place ones."""

from __future__ import annotations

import re
from functools import lru_cache

from compilescope.model.graph import Node, TensorInfo
from compilescope.rules.hardware.op_names import SCATTERED_COPIES, canonical
from compilescope.rules.hardware.strides import is_dense

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
