"""All that a list of tensors holds after a call that changed it, also what was there before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from compilescope.base.patterns import late
from compilescope.measure.diff.runs.model_state import State
from compilescope.measure.diff.runs.trial import AFTER, TrialValue
from compilescope.measure.tensors.structure import take_apart

_ITEM = late(r"(.*)\[\d+\]$")


def lists_held(state: State, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, list[Any]]:
    """What each list holds now, by its name: those of the state and those of the arguments."""
    lists: dict[str, list[Any]] = {}
    for name, held in state.reachable.containers:
        if isinstance(held, list):
            lists.setdefault(name, list(held))
    for name, value in [("args", args), *kwargs.items()]:
        apart = take_apart(value, name)
        for path, told in apart.containers.items():
            if told.startswith("list of "):
                items = (apart.leaves.get(f"{path}[{n}]") for n in range(len(apart.leaves)))
                lists[path] = [item for item in items if item is not None]
    return lists


def list_contents(changed: Iterable[str], lists: Mapping[str, list[Any]]) -> dict[str, TrialValue]:
    """The items of each list in which some item is among the changes, as changes are named."""
    found = (_ITEM.match(name.removesuffix(AFTER)) for name in changed)
    wanted = {match[1]: lists[match[1]] for match in found if match and match[1] in lists}
    return {
        f"{name}[{number}]{AFTER}": TrialValue("change", item)
        for name, items in wanted.items()
        if all(isinstance(item, torch.Tensor) for item in items)
        for number, item in enumerate(items)
    }


def shapes_of_lists(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, list[list[int]]]:
    """The sizes of the tensors in each list of several: another version may keep them joined."""
    found: dict[str, list[list[int]]] = {}
    for name, value in [("args", args), *kwargs.items()]:
        for path, leaf in take_apart(value, name).leaves.items():
            match = _ITEM.match(path)
            if match is not None and isinstance(leaf, torch.Tensor):
                found.setdefault(match[1], []).append(list(leaf.shape))
    return {path: shapes for path, shapes in found.items() if len(shapes) > 1}


def pieces_of(tensor: torch.Tensor, shapes: list[list[int]]) -> tuple[list[int], int] | None:
    """Sizes and dimension of the parts with these shapes that the tensor is joined of; None where
    it is not."""
    for dim in range(tensor.dim()):
        sizes = [shape[dim] if dim < len(shape) else -1 for shape in shapes]
        rest = [[*shape[:dim], *shape[dim + 1 :]] for shape in shapes]
        own = [*tensor.shape[:dim], *tensor.shape[dim + 1 :]]
        if sum(sizes) == tensor.shape[dim] and all(each == own for each in rest):
            return sizes, dim
    return None
