"""What is noted of a value that a user's variable held: kind, dtype and shape, not its contents."""

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
