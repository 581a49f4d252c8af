"""Sizes that torch keeps as symbols: what they stood for, and which symbols they are made of.

Asking a symbol for its value (`int(size)`) would fix it, and the graph with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def size_hint(size: Any) -> int | None:
    """What it was when the graph was made; None for a size that only the running program knows."""
    if type(size) is int:
        return size
    node = getattr(size, "node", None)
    try:
        hint = node.hint if node is not None else None
    except Exception:  # torch refuses for sizes that depend on data, each version in its own way.
        return None
    return hint if type(hint) is int else None


def symbol_of(value: Any) -> str | None:
    """The symbol that a size is, and nothing more."""
    expression = getattr(getattr(value, "node", None), "expr", None)
    return str(expression) if getattr(expression, "is_Symbol", False) else None


def symbols_in(value: Any) -> set[str]:
    """All symbols that sizes and strides are made of."""
    found: set[str] = set()
    for size in _sizes(value):
        expression = getattr(getattr(size, "node", None), "expr", None)
        found.update(map(str, getattr(expression, "free_symbols", ())))
    return found


def _sizes(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield from value.shape
        if value.layout is torch.strided:
            yield from value.stride()
            yield value.storage_offset()
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _sizes(item)
    else:
        yield value
