"""Nested values, leaf by leaf: lists, dicts and outputs of models, as torch goes through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only


def leaves_of(tree: Any) -> list[Any]:
    return list(tree_leaves(tree))


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    return tree_map_only(torch.Tensor, function, tree)
