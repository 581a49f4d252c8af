"""How often tensors were written into, as autograd counts it.

What is written and then brought back bit by bit is the same to everybody but autograd, which would
refuse the backward pass of a call that the program made before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Versions:
    """The counts of some tensors at one time."""

    def __init__(self, tensors: Iterable[torch.Tensor]) -> None:
        # Tensors of inference mode have no count.
        known = [tensor for tensor in tensors if not tensor.is_inference()]
        self._counts = [(tensor, tensor._version) for tensor in known]

    def restore(self) -> None:
        """Where this torch lets us."""
        setter: Any = getattr(torch._C._autograd, "_unsafe_set_version_counter", None)
        if setter is None:
            return
        moved = [(t, count) for t, count in self._counts if t._version != count]
        if not moved:
            return
        try:
            setter(tuple(t for t, _ in moved), tuple(count for _, count in moved))
        except TypeError:  # torch 2.5 and before take one tensor at a time.
            for tensor, count in moved:
                setter(tensor, count)
