"""A model for benchmarks: how it is described, what building it gives, and losses to train it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

Loss = Callable[[Any], Tensor]


@dataclass(frozen=True)
class Built:
    """A module on the CPU, in float32 and eval mode, and inputs for it."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Loss | None = None
    """Makes a number of the output; None: the mean of its squares."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Something to benchmark, in its usual size and a small one."""

    name: str
    title: str
    about: str
    """One sentence: what it is, where its code comes from."""
    build: Callable[[bool, int], Built]
    """Of (small, batch). A batch of 0 leaves it to the model."""
    parameters: int | None = None
    """In the usual size; None: not known before it is built."""
    batch: int = 0
    """The usual one; 0: the model's own."""
    small_batch: int = 0
    inputs: str = ""
    """One sample's input, in words."""
    needs: tuple[str, ...] = ()
    """Packages beyond torch."""
    aliases: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be built anywhere: its plugin is broken."""

    def usual_batch(self, small: bool) -> int:
        return self.small_batch if small else self.batch


def count_parameters(model: nn.Module) -> int:
    """Shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


def class_loss(logits: Tensor) -> Tensor:
    """Cross entropy with fixed labels. Which ones doesn't matter for time or numbers; they are made
    where the logits are, so that no copy between devices is measured."""
    flat = logits.flatten(0, -2)
    labels = torch.arange(flat.shape[0], device=flat.device) % flat.shape[1]
    return nn.functional.cross_entropy(flat, labels)


def logits_loss(output: Any) -> Tensor:
    """`class_loss` of a transformers model's output."""
    return class_loss(output.logits)


def squares_loss(output: Any) -> Tensor:
    """The mean of the squares of all floating-point tensors in an output of any form."""
    found = [tensor for tensor in _tensors(output) if tensor.is_floating_point()]
    if not found:
        raise ValueError("the output holds no floating-point tensor to train on")
    total = sum(tensor.square().sum() for tensor in found)
    return total / sum(tensor.numel() for tensor in found)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))
