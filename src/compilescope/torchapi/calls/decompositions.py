"""Decompositions of ATen operators that AOTAutograd can apply."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch


def decompositions_for(names: Iterable[str]) -> dict[Any, Callable[..., Any]]:
    """torch's core ATen set, and those of these operators of `aten` that this torch can take
    apart."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    known = [getattr(torch.ops.aten, name) for name in names if hasattr(torch.ops.aten, name)]
    return {**core_aten_decompositions(), **get_decompositions(known)}


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Attention is traced as matrix products and a softmax, not as one fused operator whose
    backward nobody can take apart."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:
        yield
        return
    with sdpa_kernel(SDPBackend.MATH):
        yield
