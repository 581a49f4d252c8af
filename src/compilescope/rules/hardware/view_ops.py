"""Operators that make no memory of their own: views of what they are given, and in-place ones."""

from __future__ import annotations

from functools import lru_cache

from compilescope.model.graph import Node, TensorInfo
from compilescope.rules.hardware.op_names import canonical
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
