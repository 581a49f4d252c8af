"""Runs one island: calls what the adapter compiled, and sees to it that what comes back fits.

The host goes on with what an island gives, so its results must be as the graph says: as many, of
those shapes and formats, and laid out so that a later `view` still works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.graphs.values import size_hint

log = logging.getLogger(__name__)


class Observer(Protocol):
    """Looks at calls of an island, in checking mode."""

    def call(self, run: Callable[..., Any], inputs: Sequence[Any]) -> Any: ...


class IslandCall(torch.nn.Module):  # type: ignore[misc]
    """An island in the outer graph."""

    def __init__(
        self,
        label: str,
        run: Callable[..., Any],
        expected: Sequence[Any],
        *,
        fallback: Callable[..., Any] | None = None,
        on_fallback: Callable[[str], None] | None = None,
    ) -> None:
        """`label` is what to call it in an error; `expected` are its results without data;
        `fallback` runs it where `run` raises."""
        super().__init__()
        self.label = label
        self.observer: Observer | None = None
        self._run = run
        self._expected = [_ExpectedResult(value) for value in expected]
        self._fallback = fallback
        self._on_fallback = on_fallback

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        # Autograd has done its part before: a compiled function is not asked for gradients.
        given = [
            value.detach() if isinstance(value, torch.Tensor) and value.requires_grad else value
            for value in inputs
        ]
        if self.observer is not None:
            return self._fitted(self.observer.call(self._guarded, tuple(given)))
        return self._fitted(self._guarded(*given))

    __call__ = forward  # No hooks are ever set on it, and looking for them takes time.

    def _guarded(self, *inputs: Any) -> Any:
        if self._fallback is None:
            return self._run(*inputs)
        try:
            return self._run(*inputs)
        except Exception as error:  # The border to a plugin.
            why = f"{self.label} failed at run time ({type(error).__name__}: {error})"
            log.warning("%s; running its fallback instead", why)
            if self._on_fallback is not None:
                self._on_fallback(why)
            return self._fallback(*inputs)

    def _fitted(self, given: Any) -> tuple[Any, ...]:
        results = given if isinstance(given, (tuple, list)) else (given,)
        if len(results) != len(self._expected):
            raise ToolError(
                f"{self.label} returned {len(results)} results, but its graph has "
                f"{len(self._expected)}.",
                hint="What compile() returns must give the graph's outputs, in order.",
            )
        return tuple(
            [
                value if wanted.is_exactly(value) else wanted.fitted(value, number, self.label)
                for number, (value, wanted) in enumerate(zip(results, self._expected, strict=True))
            ]
        )


class _ExpectedResult:
    """What a result must be like."""

    def __init__(self, value: Any) -> None:
        self._is_tensor = isinstance(value, torch.Tensor)
        self._exact: tuple[Any, ...] | None = None
        if not self._is_tensor:
            return
        self._dtype, self._rank = value.dtype, value.dim()
        self._shape = [size if type(size) is int else None for size in value.shape]
        self._device = value.device
        self._stride = self._order = None
        if value.layout is torch.strided:
            strides = list(value.stride())
            if all(type(step) is int for step in strides):
                self._stride = strides
                self._exact = (value.dtype, value.device, tuple(self._shape), tuple(strides))
            else:
                self._order = _order(strides)

    def is_exactly(self, value: Any) -> bool:
        """The usual case, in one comparison. False says nothing."""
        return type(value) is torch.Tensor and self._exact == (
            value.dtype,
            value.device,
            value.shape,
            value.stride(),
        )

    def fitted(self, value: Any, number: int, label: str) -> Any:
        if not self._is_tensor:
            return value
        self._check(value, number, label)
        if value.layout is not torch.strided:
            return value
        if self._stride is not None:
            if _same_strides(value, self._stride) or 0 in self._stride:
                return value  # Elements that share memory cannot be written one by one.
            fresh = torch.empty_strided(
                value.shape, self._stride, dtype=value.dtype, device=value.device
            )
            return fresh.copy_(value)
        if self._order is not None and not _is_dense(value, self._order):
            back = sorted(range(self._rank), key=self._order.__getitem__)
            return value.permute(self._order).contiguous().permute(back)
        return value

    def _check(self, value: Any, number: int, label: str) -> None:
        if not isinstance(value, torch.Tensor):
            found = type(value).__name__
        elif (
            value.dtype == self._dtype
            and value.dim() == self._rank
            and value.device.type == self._device.type
            and all(w in (None, s) for w, s in zip(self._shape, value.shape, strict=True))
        ):
            return
        else:
            found = f"{value.dtype} {list(value.shape)} on {value.device}"
        sizes = ["?" if size is None else size for size in self._shape]
        wanted = f"{self._dtype} [{', '.join(map(str, sizes))}] on {self._device}"
        raise ToolError(
            f"{label}: result {number} is {found}; the graph says {wanted}.",
            hint="The host uses it as is: convert it before returning it.",
        )


def _order(strides: Sequence[Any]) -> list[int] | None:
    """Dimensions from the outermost in memory to the innermost, as the graph was traced."""
    steps = [size_hint(step) for step in strides]
    if any(step is None for step in steps):
        return None
    return sorted(range(len(steps)), key=lambda dim: (-(steps[dim] or 0), dim))


def _same_strides(value: torch.Tensor, wanted: Sequence[int]) -> bool:
    """Strides of dimensions of one element say nothing."""
    return value.numel() == 0 or all(
        size == 1 or own == step
        for size, own, step in zip(value.shape, value.stride(), wanted, strict=True)
    )


def _is_dense(value: torch.Tensor, order: Sequence[int]) -> bool:
    return bool(value.permute(order).is_contiguous())
