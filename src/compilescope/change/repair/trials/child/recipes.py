"""Other inputs for a compiled region, each made by a recipe from the recorded ones.

The same recipe on the same inputs gives the same, so two versions of a program are asked the same
questions.

What a region accepts nobody knows: whole numbers stay within the range of the recorded ones unless
the recipe is about that, and what the original refuses, the other version has to refuse too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import torch

from compilescope.change.repair.trials.child.list_contents import pieces_of
from compilescope.measure.tensors.copies import CopiedArguments, is_plain
from compilescope.measure.tensors.structure import argument_leaves

RECORDED, OTHER_WEIGHTS, OTHER_MODE = "recorded", "weights", "mode"
"""The arguments as they were; with the weights moved, with `training` the other way."""
PLAIN_NUMBER = "number"
"""The arguments as they were, and another number beside them: an attribute, a global variable."""
AROUND = "around"
"""Values, or (as a target) weights, drawn around a number that stands in the change."""
ASKED_OF_ANYBODY = frozenset({PLAIN_NUMBER, "size", AROUND, "beyond", "nan-in"})
"""What nobody vouches for is asked these. Many programs refuse them: then they are left out."""
TRAINED, UNTRAINED = "trained", "untrained"
"""The arguments as they were, but that they require gradients, or do not."""
_AS_RECORDED = (RECORDED, OTHER_WEIGHTS, OTHER_MODE, PLAIN_NUMBER, TRAINED, UNTRAINED)
OTHER_VALUES, WITH_ZEROS = "values", "half-zero"
"""The target of a recipe of these that is about other values too: recorded ones may be all alike,
and hide what a state makes of them."""
_INTEGERS = ("near", "whole", "extreme", "large")
_HARMLESS = (*_AS_RECORDED, "drawn")


class InputRecipe(NamedTuple):
    """How to make inputs of the recorded ones."""

    kind: str
    seed: int = 0
    amount: float = 0.0
    target: str = ""
    """The argument that is meant, where it is one."""

    def words(self) -> str:
        told = self._words()
        more = {OTHER_VALUES: "other values", WITH_ZEROS: "zeros in half of the values"}
        return f"{told}, {more[self.target]}" if self.target in more else told

    def _words(self) -> str:
        told = {
            RECORDED: "the recorded inputs",
            OTHER_WEIGHTS: _words_of_weights(self),
            OTHER_MODE: "`training` the other way",
            TRAINED: "inputs that require gradients",
            UNTRAINED: "inputs that require no gradient",
            "values": "other values",
            "drawn": "the recorded values in another order",
            "scaled": f"values times {self.amount:g}",
            "border": "values at the border of a comparison",
            "border-plus": "values moved to the border of a comparison",
            "shifted": f"values shifted by {self.amount:g}",
            "filled": f"all values {self.amount:g}",
            "nan": "NaN among the values",
            "infinity": "infinities among the values",
            "half-nan": "NaN in half of the values",
            "half-infinity": "infinities in half of the values",
            "all-nan": "all values NaN",
            "half-zero": "zeros in half of the values",
            "wider": "other values, farther apart",
            "first-size": f"a first size {self.amount:+g}",
            "size": f"{'first ' * self.seed}sizes of {self.target} as {self.amount:g}",
            "nan-in": f"NaN among the values of {self.target} alone",
            AROUND: f"values around {self.amount:g}",
            "beyond": f"values up to {self.amount:g}",
            PLAIN_NUMBER: f"{self.target} = {self.amount:g}",
            "empty": "empty tensors",
            "extreme": "the largest integers",
            "large": "large integers",
            "near": f"integers {self.amount:+g}",
            "whole": f"all integers {self.amount:g}",
            "flag": f"{self.target} = {self.amount:g}",
        }
        return told.get(self.kind, self.kind)


def _words_of_weights(recipe: InputRecipe) -> str:
    if recipe.target == AROUND:
        return f"weights and buffers around {recipe.amount:g}"
    words = f"weights and buffers times {recipe.amount:g}"
    return words if recipe.amount else "other weights and buffers"


def family_of(recipe: InputRecipe) -> str:
    """Inputs that are refused together: what is beyond the range of one kernel for one of them,
    mostly is for the others. Empty for those that hold nothing which was not there."""
    other_scale = recipe.kind == OTHER_WEIGHTS and recipe.amount
    if recipe.kind in _HARMLESS and not other_scale and recipe.target != AROUND:
        return ""
    if recipe.kind == PLAIN_NUMBER:
        return f"{PLAIN_NUMBER} {recipe.target}"
    if recipe.kind == "size":
        return "sizes"
    return "integers" if recipe.kind in _INTEGERS else "values"


def without_fatal(recipes: Iterable[InputRecipe], fatal: Collection[str]) -> list[InputRecipe]:
    """Without families that end the process; then at least what was there in another order."""
    left = [recipe for recipe in recipes if family_of(recipe) not in fatal]
    return [*left, InputRecipe("drawn", 1)] if "values" in fatal else left


def prepare(
    arguments: CopiedArguments,
    recipe: InputRecipe,
    forms: Mapping[str, str] | None = None,
    lists: Mapping[str, list[list[int]]] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs. `forms`: how the version that they are to be like handed its numbers in; `lists`:
    the sizes of the tensors in its lists, which may be one tensor here."""
    if recipe.kind == UNTRAINED:
        return _untrained(arguments)
    if recipe.kind in _AS_RECORDED and recipe.target in (OTHER_VALUES, WITH_ZEROS):
        recipe = InputRecipe(recipe.target, recipe.seed)
    if recipe.kind in _AS_RECORDED:
        return arguments.args, arguments.kwargs
    if recipe.kind == "flag":
        return _with_flag(arguments, recipe)
    generator = torch.Generator().manual_seed(1000 + recipe.seed)
    leaves = argument_leaves(arguments.args, arguments.kwargs)
    joined = _joined(leaves, lists or {})
    resizes = recipe.kind in ("first-size", "empty")
    leading = leading_size(arguments, joined) if resizes else None
    known = {id(leaf): forms[path] for path, leaf in leaves.items() if forms and path in forms}

    alone = id(leaves.get(recipe.target)) if recipe.kind == "nan-in" else None

    def make(tensor: torch.Tensor) -> torch.Tensor:
        if alone is not None and id(tensor) != alone:
            return tensor.detach().clone()
        form = known.get(id(tensor), "")
        if form == "number":
            return tensor.detach().clone()  # A number stays what it is.
        if form and is_whole(tensor):
            wanted = getattr(torch, form)
            return _remade(tensor.to(wanted), recipe, generator, leading).to(tensor.dtype)
        if id(tensor) in joined:
            sizes, dim = joined[id(tensor)]
            parts = tensor.split(sizes, dim)
            return torch.cat([_remade(part, recipe, generator, leading) for part in parts], dim)
        return _remade(tensor, recipe, generator, leading)

    return arguments.remade(make)


def _untrained(arguments: CopiedArguments) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Parameters stay what they are."""
    args, kwargs = arguments.remade(lambda tensor: tensor.detach().clone())
    for tensor in CopiedArguments(args, kwargs, ()).tensors():
        if tensor.is_leaf and not isinstance(tensor, torch.nn.Parameter):
            tensor.requires_grad_(False)
    return args, kwargs


def _with_flag(
    arguments: CopiedArguments, recipe: InputRecipe
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = list(arguments.args), dict(arguments.kwargs)
    held: Any = args if recipe.target.isdigit() else kwargs
    key: Any = int(recipe.target) if recipe.target.isdigit() else recipe.target
    now = held[key]
    is_tensor = isinstance(now, torch.Tensor)
    held[key] = torch.full_like(now, recipe.amount) if is_tensor else type(now)(recipe.amount)
    return tuple(args), kwargs


def _joined(
    leaves: Mapping[str, Any], lists: Mapping[str, list[list[int]]]
) -> dict[int, tuple[list[int], int]]:
    """By its id: how a tensor is joined of those that the other version has in a list."""
    found: dict[int, tuple[list[int], int]] = {}
    for path, shapes in lists.items():
        leaf = leaves.get(f"{path}[0]")
        if isinstance(leaf, torch.Tensor) and f"{path}[1]" not in leaves:
            pieces = pieces_of(leaf, shapes)
            if pieces is not None:
                found[id(leaf)] = pieces
    return found


def leading_size(
    arguments: CopiedArguments, joined: Mapping[int, tuple[list[int], int]] | None = None
) -> int | None:
    """The size that most tensors begin with."""
    sizes: Counter[int] = Counter()
    for tensor in arguments.tensors():
        parts, dim = (joined or {}).get(id(tensor), ([0], -1))
        if tensor.dim():
            sizes.update(parts if dim == 0 else [tensor.shape[0]] * len(parts))
    return sizes.most_common(1)[0][0] if sizes else None


def _remade(
    tensor: torch.Tensor, recipe: InputRecipe, generator: torch.Generator, leading: int | None
) -> torch.Tensor:
    if not is_plain(tensor):
        return tensor.detach().clone()
    shape = list(tensor.shape)
    if recipe.kind == "size":
        places = shape[:1] if recipe.seed else shape
        sizes = [int(recipe.amount) if str(size) == recipe.target else size for size in places]
        shape[: len(sizes)] = sizes
    elif shape and leading is not None and shape[0] == leading:
        grown = 0 if recipe.kind == "empty" else shape[0] + int(recipe.amount)
        shape[0] = max(grown, 0)
    resized = tuple(shape) != tuple(tensor.shape)
    flat = tensor.detach().cpu().reshape(-1)
    values = _values(flat, tuple(shape), recipe, generator, resized)
    # Strides are what kernels and guards look at: they stay where the sizes do.
    if resized or 0 in tensor.stride():
        made = torch.empty(tuple(shape), dtype=tensor.dtype, device=tensor.device)
    else:
        made = torch.empty_strided(
            tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
        )
    with torch.no_grad():
        made.copy_(values.reshape(shape))
    return made


def _values(
    flat: torch.Tensor,
    shape: tuple[int, ...],
    recipe: InputRecipe,
    generator: torch.Generator,
    resized: bool,
) -> torch.Tensor:
    count = 1
    for size in shape:
        count *= size
    if resized:
        return _drawn(flat, count, generator)
    if recipe.kind == "drawn":
        return _drawn(flat, count, generator)
    if flat.dtype is torch.bool:
        return _of_bools(flat, recipe, generator)
    if is_whole(flat):
        if recipe.kind == AROUND:
            return _around_whole(flat, recipe, generator)
        return _of_whole(flat, recipe, generator)
    make = _FLOATS.get(recipe.kind)
    return make(flat, recipe, generator) if make is not None else flat


def _of_bools(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    if recipe.kind == "filled":
        return torch.full_like(flat, recipe.amount > 0)
    if recipe.kind == "scaled" and recipe.amount < 0:
        return ~flat
    if (
        recipe.kind in ("half-nan", "half-infinity")
        and flat.numel()
        and bool((flat == flat[0]).all())
    ):
        # A mask of one answer alone would show nothing of what lies under it.
        return torch.rand(flat.shape, generator=generator, device="cpu") < 0.5
    return _drawn(flat, flat.numel(), generator) if recipe.kind == "values" else flat


def _of_whole(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    if recipe.kind in ("near", "whole"):
        return _beside(flat, recipe)
    if recipe.kind in ("extreme", "large") and flat.numel() == 1:
        return flat
    if recipe.kind == "extreme":
        info = torch.iinfo(flat.dtype)
        ends = torch.tensor([info.max, info.min, info.max - 1], dtype=flat.dtype, device="cpu")
        return ends[torch.arange(flat.numel(), device="cpu") % 3]
    if recipe.kind == "large":
        # Their squares do not fit any more.
        return flat * 2 ** (torch.iinfo(flat.dtype).bits // 2 + 1)
    if recipe.kind in ("filled", "shifted") and flat.numel():
        low, high = int(flat.min()), int(flat.max())
        # One of the numbers that are there: others may be no index of anything.
        return torch.full_like(flat, low if recipe.amount <= 0 else high)
    return _drawn(flat, flat.numel(), generator) if recipe.kind == "values" else flat


def _beside(flat: torch.Tensor, recipe: InputRecipe) -> torch.Tensor:
    """One more, one less, or all alike; never beyond what the dtype holds."""
    if recipe.kind == "whole":
        return torch.full_like(flat, int(recipe.amount))
    info = torch.iinfo(flat.dtype)
    end = info.max if recipe.amount > 0 else info.min
    return torch.where(flat == end, flat, flat + int(recipe.amount))


def _drawn(flat: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """From the numbers that are there."""
    if not flat.numel():
        return torch.zeros(count, dtype=flat.dtype, device="cpu")
    return flat[torch.randint(0, flat.numel(), (count,), generator=generator, device="cpu")]


def _around_whole(
    flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator
) -> torch.Tensor:
    """The number and its neighbours among those that are there, as far as the dtype holds them."""
    info, number = torch.iinfo(flat.dtype), int(recipe.amount)
    near = [each for each in (number - 1, number, number + 1) if info.min <= each <= info.max]
    if number != recipe.amount or not near:
        return flat
    return _mixed(flat, torch.tensor(near, dtype=flat.dtype, device="cpu"), generator)


def _around(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    """The number, what is a little more and less, and its negative, among those that are there."""
    number = recipe.amount
    near = [number, number * 1.001, number * 0.999, -number]
    return _mixed(flat, torch.tensor(near, device="cpu").to(flat.dtype), generator)


def _mixed(flat: torch.Tensor, near: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    draws = torch.rand(flat.shape, generator=generator, device="cpu")
    return torch.where(draws < 0.5, _drawn(near, flat.numel(), generator), flat)


def _up_to(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    """Spread evenly, beyond the number on both sides."""
    draws = torch.rand(flat.shape, generator=generator, dtype=torch.float64, device="cpu")
    return ((2 * draws - 1) * recipe.amount).to(flat.dtype)


Maker = Callable[[torch.Tensor, InputRecipe, torch.Generator], torch.Tensor]


def _alike(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    """Of the same mean and spread."""
    if flat.is_complex() or not bool(flat.isfinite().all()):
        return _drawn(flat, flat.numel(), generator)
    wide = flat.to(torch.float64)
    mean = float(wide.mean()) if flat.numel() else 0.0
    spread = float(wide.std()) if flat.numel() > 1 else 0.0
    noise = torch.randn(flat.shape, generator=generator, dtype=torch.float64, device="cpu")
    return noise * (spread or 1.0) + mean


def _planted(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    values = flat.clone()
    odd = (float("nan"),) if recipe.kind in ("nan", "nan-in") else (float("inf"), -float("inf"))
    if values.numel():
        places = torch.randint(0, values.numel(), (len(odd),), generator=generator, device="cpu")
        values[places] = torch.tensor(odd, dtype=torch.float64, device="cpu").to(values.dtype)
    return values


def _spread(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    ranks = _ranks(flat, generator)
    values = flat.clone()
    if recipe.kind == "half-nan":
        values[ranks < 0.5] = float("nan")
    else:
        values[ranks < 0.25] = float("inf")
        values[ranks > 0.75] = -float("inf")
    return values


def _ranks(flat: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """From 0 to 1 in a drawn order: of two elements one is in either half."""
    draws = torch.rand(flat.shape, generator=generator, device="cpu")
    return draws.argsort().argsort() / max(flat.numel(), 1)


_SHORT, _EXACT = 4, 10
"""Binary digits. Chosen: sums and products of some such numbers are exact in float32, in whatever
order they are made."""


def shortened(flat: torch.Tensor, digits: int = _SHORT) -> torch.Tensor:
    """Rounded to so many binary digits of the largest."""
    largest = float(flat.detach().abs().max()) if flat.numel() and not flat.is_complex() else 0.0
    if not largest or not math.isfinite(largest):
        return flat
    unit = 2.0 ** (math.frexp(largest)[1] - digits)
    return (flat / unit).round() * unit


def is_exact(values: torch.Tensor) -> bool:
    """Are all so short that adding and multiplying them rounds nothing?"""
    return not values.is_floating_point() or bool((shortened(values, _EXACT) == values).all())


_WIDER = 3.0
"""Chosen: their sums then have either sign, and most lie beyond the recorded ones."""


def _wider(flat: torch.Tensor, recipe: InputRecipe, generator: torch.Generator) -> torch.Tensor:
    values = _alike(flat, recipe, generator)
    if values.is_complex() or not values.numel():
        return values
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    values = values.mean() + (values - values.mean()) * _WIDER
    if recipe.kind == "half-zero":
        values[_ranks(flat, generator) < 0.5] = 0.0
    return values


_FLOATS: dict[str, Maker] = {
    "half-zero": _wider,
    "wider": _wider,
    "half-nan": _spread,
    "half-infinity": _spread,
    "all-nan": lambda flat, *_: torch.full_like(flat, float("nan")),
    "values": _alike,
    "scaled": lambda flat, recipe, _: flat * recipe.amount,
    "border": lambda flat, recipe, _: shortened(flat) * recipe.amount,
    "border-plus": lambda flat, recipe, _: shortened(flat) + recipe.amount,
    "shifted": lambda flat, recipe, _: flat + recipe.amount,
    "filled": lambda flat, recipe, _: torch.full_like(flat, recipe.amount),
    "nan": _planted,
    "nan-in": _planted,
    "infinity": _planted,
    AROUND: _around,
    "beyond": _up_to,
}


def is_whole(value: Any) -> bool:
    """A tensor of whole numbers."""
    if not isinstance(value, torch.Tensor) or value.dtype is torch.bool:
        return False
    return not (value.is_floating_point() or value.is_complex() or value.is_quantized)
