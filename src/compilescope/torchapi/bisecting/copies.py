"""Copies of tensors that behave as the first ones would: strides, shared memory, parameters.

A part of a graph is run several times on the same values: each run gets copies of its own, since a
run may write into them.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import torch


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def copy_values(values: Sequence[Any]) -> list[Any]:
    """Tensors that share memory share it in the copy as well. No copy has a history."""
    shared = collections.Counter(key for value in values if (key := _storage(value)) is not None)
    storages: dict[int, Any] = {}
    seen: dict[int, Any] = {}
    copies = []
    for value in values:
        if id(value) in seen:
            # One tensor given twice stays one tensor.
            copies.append(seen[id(value)])
            continue
        key = _storage(value)
        if key is not None and shared[key] > 1:
            copied = _over(value, storages.setdefault(key, value.untyped_storage().clone()))
        else:
            copied = _copied(value)
        seen[id(value)] = copied
        copies.append(copied)
    return copies


def _storage(value: Any) -> int | None:
    if not is_tensor(value) or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return None
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        return None
    return int(value.untyped_storage()._cdata) if value.numel() else None


def _over(value: torch.Tensor, storage: Any) -> torch.Tensor:
    with torch.no_grad(), torch.inference_mode(False):
        new = torch.empty(0, dtype=value.dtype, device=value.device)
        new.set_(storage, value.storage_offset(), value.size(), value.stride())
    return _dressed(new, value)


def _copied(value: Any) -> Any:
    if not is_tensor(value):
        return value
    with torch.no_grad(), torch.inference_mode(False):
        if _storage(value) is None or _overlaps(value):
            new = value.detach().clone()
        else:
            new = torch.empty_strided(
                value.size(), value.stride(), dtype=value.dtype, device=value.device
            )
            new.copy_(value.detach())
    return _dressed(new, value)


def _overlaps(value: torch.Tensor) -> bool:
    """An expanded tensor has several elements in one place: it cannot be written to."""
    return any(
        step == 0 and size > 1 for step, size in zip(value.stride(), value.shape, strict=True)
    )


def _dressed(new: torch.Tensor, old: torch.Tensor) -> torch.Tensor:
    if isinstance(old, torch.nn.Parameter) and type(old) is torch.nn.Parameter:
        return torch.nn.Parameter(new, requires_grad=old.requires_grad)
    if old.requires_grad:
        new.requires_grad_()
    return new


def is_equal(one: Any, other: Any) -> bool:
    """Bit for bit, but that one NaN is as good as another. False where nobody can tell."""
    if not (is_tensor(one) and is_tensor(other)):
        return bool(type(one) is type(other) and one == other)
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout is not torch.strided or one.is_quantized or one.is_nested:
        return False
    with torch.no_grad():
        one, other = one.detach(), other.detach()
        if torch.equal(one, other):
            return True
        if not (one.is_floating_point() or one.is_complex()):
            return False
        same = (one == other) | ((one != one) & (other != other))
        return bool(same.all())
