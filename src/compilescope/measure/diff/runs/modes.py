"""The state of torch around a run: random numbers, grad mode, autocast, default dtype, determinism.

Each run starts in the same one, and none leaves its own behind.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from compilescope.instrument.torchapi.compilation.current import transform_depth
from compilescope.instrument.torchapi.matmul_precision import matmul_precision

_DEVICES = ("cpu", "cuda", "xpu", "mps")


class RandomState:
    """Of all generators that torch's own functions draw from."""

    def __init__(self) -> None:
        self._host = torch.get_rng_state()
        self._devices = {name: states() for name, states, _ in _accelerators()}

    def restore(self) -> None:
        torch.set_rng_state(self._host)
        for name, _, restore in _accelerators():
            if name in self._devices:
                restore(self._devices[name])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RandomState) or self._devices.keys() != other._devices.keys():
            return False
        mine, theirs = self._states(), other._states()
        return all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def _states(self) -> list[torch.Tensor]:
        return [self._host, *(state for states in self._devices.values() for state in states)]

    __hash__ = None  # type: ignore[assignment]


class Randomness:
    """Of all generators that a program may draw from without naming one: Python's and numpy's too,
    which cost more to note than torch's."""

    def __init__(self) -> None:
        self._torch = RandomState()
        self._python = random.getstate()
        numpy = sys.modules.get("numpy.random")
        self._numpy: Any = numpy.get_state() if numpy is not None else None

    def restore(self) -> None:
        self._torch.restore()
        random.setstate(self._python)
        if self._numpy is not None:
            sys.modules["numpy.random"].set_state(self._numpy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Randomness):
            return NotImplemented
        same = self._torch == other._torch and self._python == other._python
        return same and _same_numpy(self._numpy, other._numpy)

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
def kept_random_state() -> Iterator[None]:
    """Whatever is drawn within, the program finds torch's generators as it left them."""
    before = RandomState()
    try:
        yield
    finally:
        before.restore()


@contextlib.contextmanager
def same_world() -> Iterator[None]:
    """What the block changes of the state around it is changed back."""
    randomness = Randomness()
    grad = torch.is_grad_enabled()
    dtype = torch.get_default_dtype()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    precision = matmul_precision()
    cudnn = torch.backends.cudnn
    benchmark, strict = cudnn.benchmark, cudnn.deterministic
    autocast = _autocast()
    cached = torch.is_autocast_cache_enabled()
    try:
        yield
    finally:
        randomness.restore()
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)
        if matmul_precision() != precision:
            torch.set_float32_matmul_precision(precision)
        cudnn.benchmark, cudnn.deterministic = benchmark, strict
        _set_autocast(autocast)
        torch.set_autocast_cache_enabled(cached)
        torch.clear_autocast_cache()


@dataclass(frozen=True)
class CallModes:
    """The modes that a graph was called in."""

    grad: bool
    inference: bool
    autocast: Autocast
    random: RandomState = field(repr=False)

    @classmethod
    def now(cls) -> CallModes:
        inference = torch.is_inference_mode_enabled()
        return cls(torch.is_grad_enabled(), inference, _autocast(), RandomState())

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            # What an inference tensor is cannot be undone: copies are made outside of the mode.
            stack.enter_context(torch.inference_mode(self.inference))
            if not self.inference:
                stack.enter_context(torch.set_grad_enabled(self.grad))
            caching = torch.is_autocast_cache_enabled()
            stack.callback(torch.set_autocast_cache_enabled, caching)
            # A weight that was cast once would be found cast by the next run.
            torch.set_autocast_cache_enabled(False)
            stack.callback(_set_autocast, _autocast())
            _set_autocast(self.autocast)
            yield


def mode_key() -> tuple[Any, ...]:
    """What nodes of a graph can switch. Equal keys: the same operators would do the same."""
    inference = torch.is_inference_mode_enabled()
    return torch.is_grad_enabled(), inference, _autocast(), transform_depth()


Autocast = tuple[tuple[str, bool, torch.dtype], ...]
"""For each device type whether it casts, and to what."""


def _autocast() -> Autocast:
    devices = [device for device in _DEVICES if torch.amp.is_autocast_available(device)]
    return tuple((d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in devices)


def _set_autocast(wanted: Autocast) -> None:
    for device, enabled, dtype in wanted:
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
