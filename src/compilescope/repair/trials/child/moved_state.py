"""What a region holds, moved for one replay: other weights and buffers, or the modules' other mode.

A patch may be right for the weights that a program begins with, and for no others.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection

import torch

from compilescope.diff.runs.model_state import State
from compilescope.repair.trials.child.recipes import OTHER_MODE, OTHER_WEIGHTS, InputRecipe
from compilescope.tensors.copies import is_plain

_RELATIVE, _LEAST = 0.1, 0.01
"""How far a number is moved: by a tenth of it, and zeros by a hundredth. Chosen: signs mostly stay,
as those of a variance must, and rounding is far smaller."""


def movable(state: State) -> list[str]:
    """The names of the weights and buffers that have a fraction."""
    owned = {
        id(tensor)
        for module in state.holdings.modules
        for held in (module.parameters(recurse=False), module.buffers(recurse=False))
        for tensor in held
    }
    return [
        name
        for name, tensor in state.holdings.tensors.items()
        if id(tensor) in owned and tensor.is_floating_point() and is_plain(tensor)
    ]


def state_recipes(state: State) -> list[InputRecipe]:
    recipes = [InputRecipe(OTHER_WEIGHTS, 6)] if movable(state) else []
    return recipes + ([InputRecipe(OTHER_MODE)] if state.holdings.modules else [])


def can_move(state: State, recipe: InputRecipe, names: Collection[str]) -> bool:
    """Has this version what the other one moves?"""
    if recipe.kind == OTHER_WEIGHTS:
        return state.holdings.tensors.keys() >= set(names)
    return recipe.kind != OTHER_MODE or bool(state.holdings.modules)


def move(state: State, recipe: InputRecipe, names: Collection[str]) -> None:
    """In place; the state itself can bring it back."""
    if recipe.kind == OTHER_MODE:
        for module in state.holdings.modules:
            module.training = not module.training
        return
    for name in names:
        tensor = state.holdings.tensors[name]
        if recipe.amount:
            with torch.no_grad():
                tensor.mul_(recipe.amount)
            continue
        # By the name: another version may hold more, or in another order.
        seed = zlib.crc32(f"{recipe.seed} {name}".encode())
        noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed))
        with torch.no_grad():
            step = noise.to(tensor.device, tensor.dtype)
            tensor.add_(step * (tensor.abs() * _RELATIVE + _LEAST * (tensor == 0)))
