"""Which memory the tensors of a graph share, and what autograd keeps of it for the backward pass.

Read off the compiler's own fake tensors: they share storages as real ones would, and autograd has
noted on them what it saves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

# Tensors that are in a vmap wrap what they stand for. Absent in builds without functorch.
_functorch = getattr(torch._C, "_functorch", None)
_is_wrapped = getattr(_functorch, "is_functorch_wrapped_tensor", None)
_unwrapped = getattr(_functorch, "get_unwrapped", None)
_saved_names: dict[type, tuple[str, ...]] = {}


class Storages:
    """Numbers the storages of a graph, in the order in which they are met."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def place(self, value: torch.Tensor) -> tuple[int | None, int | None]:
        """Its storage's number and bytes; None for what has none, or one of symbolic size."""
        try:
            if _is_wrapped is not None and _unwrapped is not None:
                while _is_wrapped(value):
                    value = _unwrapped(value)
            storage = value.untyped_storage()
            address, size = storage._cdata, storage.nbytes()
        except (NotImplementedError, RuntimeError, AttributeError):
            return None, None  # A sparse tensor, or a subclass that has none.
        number = self._numbers.setdefault(address, len(self._numbers))
        return number, size if type(size) is int else None


class SavedTensors:
    """What autograd keeps, node by node. Ask for the nodes in order of execution.

    It keeps a function as long as something holds a result that leads back to it: at the end
    these are the graph's own results.
    """

    def __init__(self, results: Iterable[torch.Tensor]) -> None:
        # Functions are held, not only known by their addresses: those are used again.
        self._waiting = set(_functions(results, set()))
        self._made: list[torch.Tensor] = []

    def of(self, values: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """What the functions that made these values keep, beyond those of earlier nodes."""
        found: list[torch.Tensor] = []
        for function in _functions(values, None, self._waiting):
            self._waiting.discard(function)
            for value in _saved(function):
                if function.name() == "NativeDropoutBackward0" and value.device.type == "cpu":
                    value = self._mask(function, value)
                found.append(value)
        return found

    def _mask(self, function: Any, mask: torch.Tensor) -> torch.Tensor:
        """Dynamo traces dropout with a mask of bytes; a CPU runs it with one of numbers (2.13)."""
        described = getattr(function, "_input_metadata", None)
        if mask.dtype is not torch.bool or not described:
            return mask
        self._made.append(mask.to(described[0].dtype))
        return self._made[-1]


def _functions(
    values: Iterable[torch.Tensor], seen: set[Any] | None, within: set[Any] | None = None
) -> Iterator[Any]:
    """The functions that lead to these values; of those within a set only."""
    seen = set() if seen is None else seen
    waiting = [value.grad_fn for value in values if value.grad_fn is not None]
    while waiting:
        function = waiting.pop()
        if function in seen or (within is not None and function not in within):
            continue
        seen.add(function)
        waiting += [before for before, _ in function.next_functions if before is not None]
        yield function


def _saved(function: Any) -> Iterator[torch.Tensor]:
    names = _saved_names.get(type(function))
    if names is None:
        # A function that was written in Python has them all under one name.
        names = tuple(n for n in dir(function) if n.startswith("_saved_") or n == "saved_tensors")
        _saved_names[type(function)] = names
    for name in names:
        try:
            value = getattr(function, name)
        except RuntimeError:  # It was freed, or changed in place since.
            continue
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                yield item
