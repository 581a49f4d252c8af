"""The world around a run: random numbers, grad mode, default dtype, autocast, determinism.

Each run starts in the same one, and none leaves its own behind.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch

_DEVICES = ("cpu", "cuda", "xpu", "mps")


class Randomness:
    """The states of all generators that a program may draw from without naming one."""

    def __init__(self) -> None:
        self._cpu = torch.get_rng_state()
        self._devices = {name: states() for name, states, _ in _accelerators()}
        self._python = random.getstate()
        numpy = sys.modules.get("numpy.random")
        self._numpy: Any = numpy.get_state() if numpy is not None else None

    def restore(self) -> None:
        torch.set_rng_state(self._cpu)
        for name, _, restore in _accelerators():
            if name in self._devices:
                restore(self._devices[name])
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy.random"].set_state(self._numpy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Randomness):
            return NotImplemented
        mine, theirs = self._devices, other._devices
        return (
            torch.equal(self._cpu, other._cpu)
            and self._python == other._python
            and mine.keys() == theirs.keys()
            and all(
                torch.equal(a, b)
                for name in mine
                for a, b in zip(mine[name], theirs[name], strict=True)
            )
            and _same_numpy(self._numpy, other._numpy)
        )

    __hash__ = None  # type: ignore[assignment]


def _same_numpy(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return True  # numpy was first imported in between: nothing was drawn before.
    return bool(one[0] == other[0] and (one[1] == other[1]).all() and one[2:] == other[2:])


def _accelerators() -> Iterator[tuple[str, Any, Any]]:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        yield "cuda", torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all
    xpu = getattr(torch, "xpu", None)
    if xpu is not None and xpu.is_available():
        yield "xpu", xpu.get_rng_state_all, xpu.set_rng_state_all


def reseed(seed: int) -> None:
    """Other numbers from here on."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(seed % 2**32)


@contextlib.contextmanager
def same_world() -> Iterator[None]:
    """What the block changes of the world is changed back."""
    randomness = Randomness()
    grad = torch.is_grad_enabled()
    dtype = torch.get_default_dtype()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    precision = torch.get_float32_matmul_precision()
    cudnn = torch.backends.cudnn
    benchmark, strict = cudnn.benchmark, cudnn.deterministic
    autocast = {d: (torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in _casting()}
    cached = torch.is_autocast_cache_enabled()
    try:
        yield
    finally:
        randomness.restore()
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        torch.set_float32_matmul_precision(precision)
        cudnn.benchmark, cudnn.deterministic = benchmark, strict
        for device, (enabled, cast_to) in autocast.items():
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, cast_to)
        torch.set_autocast_cache_enabled(cached)
        torch.clear_autocast_cache()


def _casting() -> list[str]:
    return [device for device in _DEVICES if torch.amp.is_autocast_available(device)]
