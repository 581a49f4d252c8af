"""Stand-ins for the tensors and numbers that a call is given: without data, sizes all numbers.

A shadow passes for a tensor on its device, as torch's fake tensors do; but nothing is kept of what
it did, which makes it ten times as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from compilescope.torchapi.calls.trial_sizes import TrialSizes, Unclear

_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)
_MISSING_FLOAT = 1.5
"""For a number that only the running program knows."""


class Shadow(torch.Tensor):  # type: ignore[misc]
    """It has a device, a dtype, sizes and strides, and nothing else."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    meta: torch.Tensor

    @staticmethod
    def __new__(cls: type, meta: torch.Tensor, device: Any, requires_grad: bool = False) -> Shadow:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            meta.size(),
            strides=meta.stride(),
            storage_offset=meta.storage_offset(),
            dtype=meta.dtype,
            layout=meta.layout,
            device=device,
            requires_grad=requires_grad,
        )
        made.meta = meta
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Unclear(f"{func} outside of a rehearsal")


def fake_cast(sizes: TrialSizes, at: int) -> Cast:
    """Stand-ins that are torch's own fake tensors."""
    return Cast(sizes, at, fake_tensor)


class Cast:
    """Stand-ins for a call's arguments; one for each tensor."""

    def __init__(self, sizes: TrialSizes, at: int, make: Callable[..., torch.Tensor]) -> None:
        self._sizes = sizes
        self._at = at
        self._make = make
        self._made: dict[int, torch.Tensor] = {}
        self.fake = FakeTensorMode() if make is fake_tensor else None

    def of(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if self.fake is not None and getattr(value, "fake_mode", None) is self.fake:
                return value
            made = self._made.get(id(value))
            if made is None:
                made = self._made[id(value)] = self._tensor(value)
            return made
        if isinstance(value, torch.SymInt):
            return self._sizes.both(value)[self._at]
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            hint = value.node.hint
            if hint is None:
                return _MISSING_FLOAT if isinstance(value, torch.SymFloat) else True
            return hint
        if isinstance(value, (list, tuple)):
            items = [self.of(item) for item in value]
            if hasattr(value, "_fields"):
                return type(value)(*items)
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(self.of(value.start), self.of(value.stop), self.of(value.step))
        return value

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        plain = type(value) in _PLAIN and value.layout is torch.strided and not value.is_quantized
        if not plain or torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise Unclear(f"a tensor of type {type(value).__name__}")
        shape = [self._sizes.both(size)[self._at] for size in value.shape]
        stride = [self._sizes.both(size)[self._at] for size in value.stride()]
        return self._make(value, shape, stride, self.fake)


def shadow(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], _: Any
) -> torch.Tensor:
    meta = torch.empty_strided(shape, stride, dtype=value.dtype, device="meta")
    return Shadow(meta, value.device, value.requires_grad)


def computed_shadow(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], _: Any
) -> torch.Tensor:
    """In-place operators refuse what requires a gradient, unless it was computed."""
    made = shadow(value, shape, stride, _)
    return made if value.is_leaf else _Computed.apply(made)


def plain_shadow(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], _: Any
) -> torch.Tensor:
    return shadow(value.detach(), shape, stride, _)


class _Computed(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, value: Shadow) -> Shadow:
        return Shadow(value.meta, value.device)


def fake_tensor(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], mode: Any
) -> torch.Tensor:
    with mode:
        return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
