"""What is noted of a value that a user's variable held: kind, dtype and shape, not its contents."""

from collections.abc import Iterable
from typing import Literal

import msgspec

ValueKind = Literal["tensor", "parameter", "module", "array", "number", "text", "none", "other"]

RETURNED = "<returned>"
"""Stands for the name of what a `return` gives."""


class ValueFact(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One value that a name was seen to have."""

    kind: ValueKind
    type: str
    """The class, with its module: `torch.Tensor`, `builtins.int`."""
    dtype: str = ""
    """`float32`, of tensors and arrays."""
    shape: tuple[int, ...] | None = None
    """-1 stands for a size that varies."""
    device: str = ""
    requires_grad: bool = False
    value: str = ""
    """The repr of a short constant: a number, a bool, a short string."""
    permuted: bool = False
    """A tensor whose strides are not in the order of its dimensions: `x.T`."""


def is_permuted(sizes: Iterable[object], strides: Iterable[object]) -> bool:
    """As far as the strides are numbers: of a symbol nothing is asked."""
    known = [
        stride
        for size, stride in zip(sizes, strides, strict=True)
        if isinstance(stride, int) and not (isinstance(size, int) and size == 1)
    ]
    return known != sorted(known, reverse=True)
