"""The four dtypes of the small compiler, and torch's rules of promotion among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch

DType = Literal["f32", "f64", "i64", "bool"]
BY_TORCH: dict[torch.dtype, DType] = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.int64: "i64",
    torch.bool: "bool",
}
TO_TORCH: dict[DType, torch.dtype] = {name: dtype for dtype, name in BY_TORCH.items()}
_ORDER: tuple[DType, ...] = ("bool", "i64", "f32", "f64")


def is_float(dtype: DType) -> bool:
    return dtype in ("f32", "f64")


def default_float() -> DType:
    """What an integer becomes where a float is needed."""
    return BY_TORCH.get(torch.get_default_dtype(), "f32")


def promoted(one: DType, other: DType) -> DType:
    return max(one, other, key=_ORDER.index)


def scalar_dtype(value: Any) -> DType:
    if isinstance(value, bool):
        return "bool"
    return "i64" if isinstance(value, int) else default_float()


def result_type(
    tensors: Iterable[DType], zero_dim: Iterable[DType], scalars: Iterable[DType]
) -> DType:
    """As torch.result_type: tensors without dimensions, and numbers, count only where their kind
    (bool, integer, float) is a higher one than that of what comes before them."""
    result: DType | None = None
    for dtypes in (tensors, zero_dim, scalars):
        lower: DType | None = None
        for dtype in dtypes:
            lower = dtype if lower is None else promoted(lower, dtype)
        if lower is None:
            continue
        if result is None:
            result = lower
        elif not is_float(result) and (result == "bool" or is_float(lower)):
            result = promoted(result, lower)
    if result is None:
        raise ValueError("no operands")
    return result
