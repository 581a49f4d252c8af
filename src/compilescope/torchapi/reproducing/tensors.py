"""Tensors without their numbers, and numbers that are symbols."""

from __future__ import annotations

import math
from typing import Any

import torch

from compilescope.model.written_graph import TensorKind
from compilescope.torchapi.reproducing.constants import Unwritable


def tensor_kind(value: torch.Tensor) -> TensorKind:
    if value.layout is not torch.strided or value.is_quantized:
        raise Unwritable(f"a tensor of layout {value.layout}")
    shape = tuple(_size(size) for size in value.shape)
    stride = tuple(_size(size) for size in value.stride())
    return TensorKind(
        shape=shape,
        dtype=str(value.dtype).removeprefix("torch."),
        stride=None if stride == contiguous(shape) else stride,
        device=str(value.device),
        grad=value.requires_grad,
        dynamic=tuple(at for at, size in enumerate(value.shape) if is_symbolic(size)),
    )


def is_real(value: Any) -> bool:
    """Has it numbers?"""
    from torch._subclasses.fake_tensor import FakeTensor

    plain = type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return plain and not isinstance(value, FakeTensor) and value.device.type != "meta"


def whole_range(value: torch.Tensor) -> tuple[int, int]:
    """The smallest and largest of whole numbers."""
    if value.dtype.is_floating_point or value.dtype.is_complex or not value.numel():
        return 0, 0
    if value.dtype is torch.bool:
        return 0, 1
    return int(value.min()), int(value.max())


def is_symbolic(size: Any) -> bool:
    """A symbol that a guard has since made a number is none."""
    return not isinstance(size, int) and not size.node.expr.is_number


def number_of(value: Any, name: str) -> int | float | bool:
    """A number, or the one that a symbol stands for."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, torch.Tensor):
        return value.item()  # type: ignore[no-any-return]
    hint = getattr(getattr(value, "node", None), "hint", None)
    if hint is None:
        raise Unwritable(f"the input {name} is a number that only the program knows")
    return hint  # type: ignore[no-any-return]


def _size(size: Any) -> int:
    if isinstance(size, int):
        return size
    hint = size.node.hint if is_symbolic(size) else size.node.expr
    if hint is None:
        raise Unwritable(f"the size {size} is one that only the program knows")
    return int(hint)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(max(size, 1) for size in shape[at + 1 :]) for at in range(len(shape)))
