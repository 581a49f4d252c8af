"""The backward pass and the optimizer's step around a call, the same for both sides."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import Any

import torch

from compilescope.errors import ToolError
from compilescope.tensors.structure import flatten

Optimizers = Callable[[list[torch.Tensor]], torch.optim.Optimizer]
_LR = 0.01
"""Chosen: ten times the default of torch.optim.SGD (1e-3), so that a step is larger beside the
rounding of the weights."""
_STEPS = 8
"""Eighths have three binary digits, as many as the narrowest float8 (e5m2) keeps."""


def differentiate(output: Any, loss: Callable[[Any], Any] | None = None) -> None:
    """Run the backward pass of a loss, or of all outputs with fixed weights.

    The weights are no ones: the sum of a softmax has no gradient at all.
    """
    found = loss(output) if loss is not None else find_loss(output)
    if found is not None:
        if not isinstance(found, torch.Tensor) or found.numel() != 1:
            raise ToolError(
                f"The loss is {_described(found)}; it must be a tensor with one number."
            )
        found.backward()
        return
    tensors = list({id(leaf): leaf for leaf in _differentiable(output)}.values())
    if not tensors:
        raise ToolError(
            "There is nothing to train: no output requires a gradient.",
            hint="Leave out --train, or use a model with weights or inputs that require one.",
        )
    torch.autograd.backward(tensors, [weights_for(t, n) for n, t in enumerate(tensors)])


def find_loss(output: Any) -> torch.Tensor | None:
    """The loss that a model returns among its outputs, or as its only one."""
    if isinstance(output, dict):
        named = output.get("loss")
    else:
        named = getattr(output, "loss", None)
    if named is None:
        leaves = list(flatten(output).values())
        named = leaves[0] if len(leaves) == 1 else None
    if not isinstance(named, torch.Tensor) or named.numel() != 1 or not named.requires_grad:
        return None
    return named if named.is_floating_point() else None


def weights_for(output: torch.Tensor, number: int) -> torch.Tensor:
    """Eighths from -1 to 1, which every precision holds exactly; the same in every run."""
    generator = torch.Generator().manual_seed(number)
    steps = torch.randint(1, _STEPS + 1, output.shape, generator=generator)
    signs = torch.randint(0, 2, output.shape, generator=generator) * 2 - 1
    return (steps * signs / _STEPS).to(output.dtype).to(output.device)


def _differentiable(output: Any) -> Iterable[torch.Tensor]:
    for leaf in flatten(output).values():
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            yield leaf


def find_optimizer(wanted: Any = None) -> Optimizers:
    """From a name of torch.optim, a class, or a function of the parameters; SGD by default."""
    if wanted is None:
        return lambda parameters: torch.optim.SGD(parameters, lr=_LR)
    if isinstance(wanted, str):
        kinds = {
            name.lower(): kind
            for name, kind in vars(torch.optim).items()
            if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
        }
        kind = kinds.get(wanted.lower())
        if kind is None or kind is torch.optim.Optimizer:
            near = difflib.get_close_matches(wanted.lower(), kinds, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else ""
            raise ToolError(f"torch.optim has no optimizer named {wanted!r}.", hint=hint)
        return lambda parameters: kind(parameters, lr=_LR)
    if not callable(wanted):
        raise ToolError(
            f"The optimizer is {_described(wanted)}; it must be a torch.optim name, a class or "
            "a function of the parameters."
        )
    return _checked(wanted)


def _checked(make: Callable[..., Any]) -> Optimizers:
    def made(parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        given = make(parameters)
        if not isinstance(given, torch.optim.Optimizer):
            raise ToolError(f"The optimizer function returned {_described(given)}.")
        return given

    return made


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of {list(value.shape)}"
    return "None" if value is None else f"an object of type {type(value).__name__}"
