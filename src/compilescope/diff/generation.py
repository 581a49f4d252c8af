"""More inputs of the same form as the example: other values, other sizes, special numbers.

What a model accepts nobody knows but the model: whole numbers stay within the range of the
example's, masks are shuffled, and a set of inputs on which the reference fails is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from compilescope.diff.copies import Arguments, is_plain

_FEW = 4
"""A tensor with no more different numbers than these is a mask or a flag."""
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e4, -1e4, float("inf"), -float("inf"), float("nan"))


class Variant(NamedTuple):
    """One more set of inputs."""

    words: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class _Flavour(NamedTuple):
    words: str
    scale: float = 1.0
    special: bool = False
    grow: int = 0
    """The first dimension gets so many more places."""


_FLAVOURS = (
    _Flavour("other values"),
    _Flavour("another first size", grow=1),
    _Flavour("special numbers", special=True),
    _Flavour("large values", scale=64.0),
    _Flavour("small values", scale=1e-3),
    _Flavour("a larger first size", grow=5),
    _Flavour("zeros", scale=0.0),
)


def variants(arguments: Arguments, count: int, seed: int) -> Iterator[Variant]:
    """`count` of them, the same for the same seed."""
    for number in range(count):
        flavour = _FLAVOURS[number % len(_FLAVOURS)]
        generator = torch.Generator().manual_seed(seed + number)
        leading = _leading(arguments) if flavour.grow else None

        def remake(
            tensor: torch.Tensor,
            flavour: _Flavour = flavour,
            generator: torch.Generator = generator,
            leading: int | None = leading,
        ) -> torch.Tensor:
            return _remade(tensor, flavour, generator, leading)

        args, kwargs = arguments.remade(remake)
        yield Variant(flavour.words, args, kwargs)


def _leading(arguments: Arguments) -> int | None:
    """The size that most tensors begin with."""
    sizes = Counter(tensor.shape[0] for tensor in arguments.tensors() if tensor.dim())
    return sizes.most_common(1)[0][0] if sizes else None


def _remade(
    tensor: torch.Tensor, flavour: _Flavour, generator: torch.Generator, leading: int | None
) -> torch.Tensor:
    if not is_plain(tensor):
        return tensor.detach().clone()
    shape = list(tensor.shape)
    if shape and leading is not None and shape[0] == leading:
        shape[0] += flavour.grow
    fill = _filler(tensor)
    values = fill(tensor.detach().cpu().reshape(-1), tuple(shape), generator)
    if tensor.is_floating_point() and fill is _alike:
        values = values * flavour.scale
        if flavour.special and values.numel():
            places = torch.randint(0, values.numel(), (len(_SPECIAL),), generator=generator)
            flat = values.reshape(-1)
            flat[places] = torch.tensor(_SPECIAL, dtype=torch.float64)
            values = flat.reshape(shape)
    made = torch.empty(tuple(shape), dtype=tensor.dtype, device=tensor.device)
    if tuple(shape) == tuple(tensor.shape) and 0 not in tensor.stride():
        made = torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
        )
    with torch.no_grad():
        made.copy_(values)
    return made


Filler = Callable[[torch.Tensor, tuple[int, ...], torch.Generator], torch.Tensor]


def _filler(tensor: torch.Tensor) -> Filler:
    if tensor.is_complex():
        return _shuffled
    if tensor.is_floating_point():
        flat = tensor.detach().reshape(-1)
        few = tensor.numel() > _FEW and len(flat.unique()) <= _FEW
        return _shuffled if few or not bool(flat.isfinite().all()) else _alike
    return _shuffled if tensor.dtype is torch.bool else _in_range


def _alike(flat: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    """Of the same mean and spread."""
    wide = flat.to(torch.float64)
    mean = float(wide.mean()) if flat.numel() else 0.0
    spread = float(wide.std()) if flat.numel() > 1 else 0.0
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    return noise * (spread or 1.0) + mean


def _in_range(
    flat: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator
) -> torch.Tensor:
    if not flat.numel():
        return torch.zeros(shape, dtype=flat.dtype)
    low, high = int(flat.min()), int(flat.max())
    return torch.randint(low, high + 1, shape, generator=generator)


def _shuffled(
    flat: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator
) -> torch.Tensor:
    """Drawn from the numbers that are there."""
    if not flat.numel():
        return torch.zeros(shape, dtype=flat.dtype)
    return flat[torch.randint(0, flat.numel(), shape, generator=generator)]
