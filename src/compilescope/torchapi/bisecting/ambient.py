"""The state of torch that a graph runs in: grad mode, autocast, inference mode, random numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

_functorch = getattr(torch._C, "_functorch", None)
_interpreters = getattr(_functorch, "peek_interpreter_stack", None)


@dataclass(frozen=True)
class Ambient:
    """As it was when a graph was called."""

    grad: bool
    inference: bool
    autocast: tuple[tuple[str, bool, Any], ...]
    """Device type, whether it casts, and to what."""
    random: RandomState = field(repr=False)

    @classmethod
    def now(cls) -> Ambient:
        return cls(
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            _casting(),
            RandomState.now(),
        )

    @contextlib.contextmanager
    def entered(self, *, grad: bool | None = None) -> Iterator[None]:
        """Grad mode is the recorded one, or the one that is asked for."""
        with contextlib.ExitStack() as stack:
            # What an inference tensor is cannot be undone: copies are made outside of the mode.
            stack.enter_context(torch.inference_mode(self.inference and grad is None))
            if not self.inference or grad is not None:
                stack.enter_context(torch.set_grad_enabled(self.grad if grad is None else grad))
            caching = torch.is_autocast_cache_enabled()
            stack.callback(torch.set_autocast_cache_enabled, caching)
            # A weight that was cast once would be found cast by the next run.
            torch.set_autocast_cache_enabled(False)
            for device, enabled, dtype in self.autocast:
                stack.callback(_set_casting, device, *_casting_of(device))
                _set_casting(device, enabled, dtype)
            yield


@dataclass(frozen=True)
class RandomState:
    """Of all generators that torch's own functions draw from."""

    host: torch.Tensor
    devices: tuple[torch.Tensor, ...] = ()

    @classmethod
    def now(cls) -> RandomState:
        return cls(torch.get_rng_state(), tuple(_device_states()))

    def restore(self) -> None:
        torch.set_rng_state(self.host)
        if self.devices:
            torch.cuda.set_rng_state_all(list(self.devices))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RandomState) or len(self.devices) != len(other.devices):
            return False
        mine, theirs = (self.host, *self.devices), (other.host, *other.devices)
        return all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


@contextlib.contextmanager
def kept_random_state() -> Iterator[None]:
    """Whatever is drawn within, the program finds its generators as it left them."""
    before = RandomState.now()
    try:
        yield
    finally:
        before.restore()


def mode_key() -> tuple[Any, ...]:
    """What nodes of a graph can switch. Equal keys: the same operators would do the same."""
    depth = 0
    if _interpreters is not None:
        depth = len(_interpreters() or ())
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), _casting(), depth


def _device_states() -> list[torch.Tensor]:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return list(torch.cuda.get_rng_state_all())
    return []


def _casting() -> tuple[tuple[str, bool, Any], ...]:
    kinds = ["cpu"]
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    if found is not None:
        kinds.append(found.type)
    return tuple((kind, *_casting_of(kind)) for kind in kinds)


def _casting_of(device: str) -> tuple[bool, Any]:
    return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)


def _set_casting(device: str, enabled: bool, dtype: Any) -> None:
    torch.set_autocast_enabled(device, enabled)
    torch.set_autocast_dtype(device, dtype)
