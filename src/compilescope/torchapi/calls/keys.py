"""What the operators of a call depend on: calls that agree in it are run once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def is_dynamic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        strides: Sequence[Any] = value.stride() if value.layout is torch.strided else ()
        return any(type(size) is not int for size in (*value.shape, *strides))
    if isinstance(value, (list, tuple)):
        return any(map(is_dynamic, value))
    if isinstance(value, dict):
        return any(map(is_dynamic, value.values()))
    if isinstance(value, slice):
        return is_dynamic((value.start, value.stop, value.step))
    return isinstance(value, torch.SymInt)


def part_key(part: Any) -> Any:
    if isinstance(part, torch.Tensor):
        strides = part.stride() if part.layout is torch.strided else ()
        shape = tuple(map(_size_key, part.shape)), tuple(map(_size_key, strides))
        return shape, part.dtype, part.device, part.requires_grad, type(part)
    if isinstance(part, dict):
        return tuple((name, part_key(value)) for name, value in part.items())
    if isinstance(part, (list, tuple)):
        return type(part), tuple(map(part_key, part))
    return type(part), str(part)


def _size_key(size: Any) -> Any:
    return size if type(size) is int else size.node.expr
