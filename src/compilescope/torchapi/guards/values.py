"""A short, safe word for a value of the user's program.

Nothing of the user's runs: no `repr` of their classes, no tensor data is read.
"""

from __future__ import annotations

import enum
import types
from typing import Any

import torch

_LENGTH = 120
_ITEMS = 6


def describe(value: Any, depth: int = 2) -> str:
    kind = type(value)
    if value is None or kind in (bool, int, float, complex):
        return _short(repr(value))
    if kind in (str, bytes):
        return _short(repr(value[: _LENGTH + 1]))
    if kind in (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format):
        return str(value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return _short(str(value))
    if kind in (tuple, list, set, frozenset, dict) and depth:
        return _container(value, kind, depth)
    if isinstance(value, type):
        return value.__qualname__ if value.__module__ == "builtins" else _qualified(value)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return f"<function {value.__name__}>"
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value._name_}"
    if isinstance(value, types.CodeType):
        return f"<code of {value.co_name}>"
    return f"<{_qualified(kind)} object>"


def type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else _qualified(kind)


def _tensor(value: torch.Tensor) -> str:
    try:
        return f"{type(value).__name__}(shape={tuple(value.shape)}, dtype={value.dtype})"
    except Exception:  # A subclass may answer anything at all.
        return f"<{type(value).__name__}>"


def _container(value: Any, kind: type, depth: int) -> str:
    items = list(value.items() if kind is dict else value)
    shown = items[:_ITEMS]
    if kind is dict:
        words = [f"{describe(k, depth - 1)}: {describe(v, depth - 1)}" for k, v in shown]
    else:
        words = [describe(item, depth - 1) for item in shown]
    if len(items) > _ITEMS:
        words.append(f"... {len(items)} in all")
    inner = ", ".join(words)
    if kind is tuple:
        return _short(f"({inner},)" if len(items) == 1 else f"({inner})")
    if kind is list:
        return _short(f"[{inner}]")
    return _short(f"{{{inner}}}" if items or kind is dict else f"{kind.__name__}()")


def _qualified(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ == "__main__"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"
