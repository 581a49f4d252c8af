"""Runs eager code in float64, whatever precision it asks for: the measure of both sides' error.

Numbers of lower precision are widened as operators meet them, and casts to a lower precision do
nothing. Integers stay. Random operators give what they gave in the reference, from its tape.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from compilescope.torchapi.calls.schemas import is_higher_order, is_view, written_arguments
from compilescope.torchapi.trials.tape import NotReplayable, Tape, is_drawing

_WIDE = {
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_BITS = frozenset({"view.dtype", "_unsafe_view.dtype", "view_copy.dtype", "frexp.Tensor"})
"""Operators that look at the bits of a number: they mean nothing in another precision."""


def wide_dtype(dtype: torch.dtype) -> torch.dtype:
    """What stands for it: float64, complex128, or itself."""
    if dtype.is_floating_point:
        return torch.float64
    return _WIDE.get(dtype, dtype)


class Widening(TorchDispatchMode):  # type: ignore[misc]
    """While it is on, all arithmetic on numbers that are not whole is float64's.

    What an operator such as `cond` runs within starts from float64, and is left to itself.
    """

    supports_higher_order_operators = True

    def __init__(self, tape: Tape | None = None) -> None:
        super().__init__()
        self._tape = tape
        if tape is not None:
            tape.rewind()
        self.scalars: list[Any] = []
        """As in a survey."""
        self.narrow: dict[str, str] = {}
        """Operators that refused float64 and ran in float32, with their words."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func)
        if is_higher_order(func):
            wide_args, wide_kwargs = tree_map(_widened, (args, kwargs))
            return func(*wide_args, **wide_kwargs)
        if name.split(".", 1)[-1] in _BITS and _has_floats(args):
            raise NotReplayable(f"{name} reads the bits of a number")
        if is_drawing(func, args, kwargs) and self._tape is not None:
            return self._tape.replay(func, args, kwargs)
        if is_view(name):
            # A copy would be no view. What lies below it is widened where it is used.
            return func(*args, **kwargs)
        result = self._computed(func, name, args, kwargs)
        if name.startswith("aten._local_scalar_dense"):
            self.scalars.append(result)
        return result

    def _computed(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        written = _written(func, args, kwargs)
        wide_args, wide_kwargs = tree_map(_widened, (args, kwargs))
        if "softmax" in name:
            # The flag that says "from half to float" is refused with anything but half.
            wide_args = tuple(False if item is True else item for item in wide_args)
        try:
            result = func(*wide_args, **wide_kwargs)
        except (NotImplementedError, RuntimeError) as error:
            if written:
                raise
            result = self._narrowly(func, args, kwargs, error)
        for position, key, given in written:
            made = wide_args[position] if key is None else wide_kwargs[key]
            if made is not given:
                # A tensor that nobody widened is written into: it takes what it can hold.
                given.copy_(made)
                result = given if result is made else result
        return tree_map(_widened, result) if not written else result

    def _narrowly(self, func: Any, args: Any, kwargs: Any, error: Exception) -> Any:
        narrow_args, narrow_kwargs = tree_map(_narrowed, (args, kwargs))
        try:
            result = func(*narrow_args, **narrow_kwargs)
        except (NotImplementedError, RuntimeError):
            raise error from None
        self.narrow[str(func)] = " ".join(str(error).split())[:200]
        return result


def _written(func: Any, args: Any, kwargs: Any) -> list[tuple[int, str | None, torch.Tensor]]:
    """The tensors that an operator writes into, with their places."""
    schema = getattr(func, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    found: list[tuple[int, str | None, torch.Tensor]] = []
    for position in written_arguments(func):
        name = schema.arguments[position].name
        if position < len(args) and isinstance(args[position], torch.Tensor):
            found.append((position, None, args[position]))
        elif isinstance(kwargs.get(name), torch.Tensor):
            found.append((position, name, kwargs[name]))
    return found


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        wide = wide_dtype(value.dtype)
        return value if wide is value.dtype or value.is_quantized else value.to(wide)
    return wide_dtype(value) if isinstance(value, torch.dtype) else value


def _narrowed(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype is torch.float64:
        return value.to(torch.float32)
    return torch.float32 if value is torch.float64 else value


def _has_floats(args: Any) -> bool:
    return any(isinstance(arg, torch.Tensor) and arg.is_floating_point() for arg in args)
