"""Eager code whose every rounding goes another way: what comes of it is what rounding can do.

A result that is a sum of many, a branch that hangs on the last bit, an argmax between near ties:
a right compiler may land elsewhere, and how far is seen here without knowing why.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from compilescope.torchapi.calls.schemas import is_view
from compilescope.torchapi.trials.tape import is_drawing

_EXACT = """
    _to_copy clone copy_ cat stack index select slice gather embedding where masked_fill expand
    permute view reshape constant_pad_nd pad neg abs relu maximum minimum clamp max min amax amin
    sort topk zeros ones full arange zeros_like ones_like full_like empty new_zeros new_ones
    scatter index_select repeat flip roll tril triu detach alias lift_fresh_copy floor ceil round
    trunc sign unbind split max_pool2d_with_indices threshold_backward
"""
_MOVES = frozenset(_EXACT.split())
"""Operators that round nothing."""
_WHOLE_BELOW = float(1 << 20)


class Jitter(TorchDispatchMode):  # type: ignore[misc]
    """Each result that was rounded goes one unit up or down, or stays."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = str(func)
        base = name.split(".")[1] if "." in name else name
        schema = getattr(func, "_schema", None)
        if schema is None or schema.is_mutable or is_view(name) or base in _MOVES:
            return result
        if is_drawing(func, args, kwargs):
            return result
        return tree_map(self._moved, result)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        if value.layout is not torch.strided or value.is_quantized or not value.numel():
            return value
        steps = torch.randint(-1, 2, value.shape, generator=self._generator).to(value.device)
        unit = torch.finfo(value.dtype).eps
        # Whole numbers are most often exact: flags, counts, sizes.
        whole = (value == value.round()) & (value.abs() < _WHOLE_BELOW)
        moved = value + value * steps.to(value.dtype) * unit
        return torch.where(whole | ~torch.isfinite(value), value, moved)
