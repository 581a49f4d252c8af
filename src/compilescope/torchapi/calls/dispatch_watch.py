"""Sees which operators torch runs, and on tensors of which devices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class OperatorWatch(TorchDispatchMode):  # type: ignore[misc]
    """Counts the operators that run on these kinds of devices while it is on."""

    def __init__(self, devices: frozenset[str]) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()
        self._devices = devices

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        kinds = {
            leaf.device.type
            for leaf in tree_leaves((args, kwargs, result))
            if isinstance(leaf, torch.Tensor)
        }
        if kinds and kinds <= self._devices:
            self.seen[str(func)] += 1
        return result


def is_compiled(function: Any) -> bool:
    """Was it made by torch.compile? Dynamo runs nothing compiled while operators are watched."""
    return any(
        hasattr(function, mark)
        for mark in ("_torchdynamo_orig_callable", "_orig_mod", "get_compiler_config")
    )
