"""Which inputs a region is asked: for a fix, for anybody's change, where nobody vouches for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import torch

from compilescope.change.repair.trials.child.recipes import (
    AROUND,
    OTHER_VALUES,
    OTHER_WEIGHTS,
    RECORDED,
    TRAINED,
    UNTRAINED,
    WITH_ZEROS,
    InputRecipe,
    is_whole,
    leading_size,
)
from compilescope.measure.tensors.copies import CopiedArguments, is_plain
from compilescope.measure.tensors.structure import argument_leaves

_FLAGS = 6
"""So many arguments that are plain numbers are varied. Chosen: each costs one or two more replays
of the region."""
_ALONE = 4
"""Arguments. Chosen, as the next one."""
_SIZES = 5
"""Of all arguments together, that are varied. Chosen: each costs two or more replays."""
_LARGEST_SIZE = 2049
"""That inputs are given because it stands in a change. Chosen: small tensors stay small."""
_WEIGHTS_TIMES = (1e4, 1e30, 1e-6)
"""Chosen: with the first, activations of float16 (up to 65504) become infinite, with the second
those of float32 (up to 3.4e38); with the last, what layers give hardly differs any more, which is
what a loop that stops early waits for."""


def usual_recipes(
    arguments: CopiedArguments, *, sizes: bool, first: bool, thorough: bool = False
) -> list[InputRecipe]:
    """The questions that every region is asked; `first`: all of them, else a few. `thorough`: also
    what only a change by anybody is asked."""
    recipes = [InputRecipe(RECORDED)]
    tensors = arguments.tensors()
    if any(t.is_floating_point() or t.is_complex() for t in tensors):
        recipes += [InputRecipe("values", 1), InputRecipe("scaled", amount=-1.0)]
        if first:
            recipes += [InputRecipe("filled"), InputRecipe("nan", 2), InputRecipe("infinity", 3)]
            recipes += [InputRecipe("scaled", amount=100.0), InputRecipe("scaled", amount=0.01)]
        recipes += _of_anyone(tensors, first) if thorough else []
    elif tensors:
        recipes += [InputRecipe("values", 1), InputRecipe("filled")]
    if first:
        recipes += _of_integers([t for t in tensors if is_whole(t)])
    if sizes and first and leading_size(arguments) is not None:
        recipes += [
            InputRecipe("first-size", 4, 1.0),
            InputRecipe("first-size", 5, -1.0),
            InputRecipe("empty"),
        ]
    return recipes + (list(_flags(arguments)) if first else [])


def _of_anyone(tensors: list[torch.Tensor], first: bool) -> list[InputRecipe]:
    """What only a change by anybody is asked. A single NaN may lie beside all that a mask covers,
    and what is recorded may need no gradient, and hold no zero."""
    recipes = []
    if first:
        recipes += [InputRecipe("half-nan", 7), InputRecipe("half-infinity", 8)]
        recipes += [InputRecipe("all-nan")]
        recipes += [InputRecipe("wider", seed) for seed in (12, 13, 14)]
    recipes += [InputRecipe("half-zero", 11)]
    if torch.is_grad_enabled() and any(map(_can_be_trained, tensors)):
        recipes += [InputRecipe(TRAINED), InputRecipe(TRAINED, 9, target=WITH_ZEROS)]
    if any(tensor.requires_grad and tensor.is_leaf for tensor in tensors):
        recipes += [InputRecipe(UNTRAINED)]
    return recipes


def on_other_values(recipes: Iterable[InputRecipe]) -> list[InputRecipe]:
    """The same states, met with other values."""
    return [recipe._replace(seed=recipe.seed or 9, target=OTHER_VALUES) for recipe in recipes]


def _can_be_trained(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and not tensor.requires_grad


def _of_integers(tensors: list[torch.Tensor]) -> list[InputRecipe]:
    """Numbers beside those that were seen: a graph may hold for one of them alone. The largest ones
    only where there are several: a single one is mostly a count, and a loop of as many turns would
    have no end."""
    if not tensors:
        return []
    recipes = [InputRecipe("near", amount=1.0), InputRecipe("near", amount=-1.0)]
    recipes += [InputRecipe("whole", amount=0.0), InputRecipe("whole", amount=1.0)]
    if any(tensor.numel() > 1 for tensor in tensors):
        recipes += [InputRecipe("extreme"), InputRecipe("large")]
    return recipes


def wary_recipes(arguments: CopiedArguments, numbers: Collection[float]) -> Iterator[InputRecipe]:
    """Beside the usual ones, where nobody vouches for a change: other sizes, also where the program
    has one alone, and inputs around the numbers that stand in the change."""
    chosen = list(dict.fromkeys(numbers))
    wanted = [each for each in chosen if each in range(2, _LARGEST_SIZE)]
    for size, only_first in _sizes(arguments):
        for other in dict.fromkeys([size + 1.0, size - 1.0, *wanted]):
            yield InputRecipe("size", int(only_first), other, str(size))
    floating = [path for path, leaf in _floating(arguments)]
    if len(floating) > 1:
        # A check of one argument is none of another.
        yield from (InputRecipe("nan-in", 11, target=path) for path in floating[:_ALONE])
    for number in chosen:
        yield InputRecipe(AROUND, 9, number)
        if abs(number) >= 1:
            yield InputRecipe("beyond", 9, 4 * number)
        yield InputRecipe(OTHER_WEIGHTS, 9, number, AROUND)


def more_recipes(arguments: CopiedArguments) -> Iterator[InputRecipe]:
    """To find inputs that take the other side of a branch; the likely ones first. What is given
    token ids has no infinity among its inputs: only its weights can bring one."""
    weights = [InputRecipe(OTHER_WEIGHTS, amount=amount) for amount in _WEIGHTS_TIMES]
    floating = any(tensor.is_floating_point() for tensor in arguments.tensors())
    yield from [] if floating else weights
    yield from _more_values()
    yield from weights if floating else []


def _more_values() -> Iterator[InputRecipe]:
    for amount in (1.0, -1.0, 10.0, -10.0, 0.5, -0.5, 1e3, -1e3, 2.0, -2.0, 1e-3, -1e-3):
        yield InputRecipe("filled", amount=amount)
        yield InputRecipe("shifted", amount=amount)
    for seed in range(10, 18):
        yield InputRecipe("values", seed)
    for amount in (1e4, -100.0, 1e-4, -1e4):
        yield InputRecipe("scaled", amount=amount)


def _flags(arguments: CopiedArguments) -> Iterator[InputRecipe]:
    """Bools both ways, whole numbers one more and none, other numbers with the other sign."""
    named = [(str(i), value) for i, value in enumerate(arguments.args)]
    plain = [
        (name, value)
        for name, value in [*named, *arguments.kwargs.items()]
        if type(value) in (bool, int, float)
    ]
    for name, value in plain[:_FLAGS]:
        if isinstance(value, bool):
            yield InputRecipe("flag", amount=float(not value), target=name)
        elif isinstance(value, int):
            yield InputRecipe("flag", amount=float(value + 1), target=name)
            if value > 0:
                yield InputRecipe("flag", amount=float(value - 1), target=name)
        else:
            yield InputRecipe("flag", amount=-value, target=name)


def _floating(arguments: CopiedArguments) -> Iterator[tuple[str, torch.Tensor]]:
    for path, leaf in argument_leaves(arguments.args, arguments.kwargs).items():
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and is_plain(leaf):
            yield path, leaf


def _sizes(arguments: CopiedArguments) -> Iterator[tuple[int, bool]]:
    """The sizes that the arguments have, the leading one first: what is one number in several
    dimensions mostly is one thing. Where it is not, those of first dimensions alone come too."""
    shapes = [tuple(tensor.shape) for tensor in arguments.tensors()]
    leading = leading_size(arguments)
    found = dict.fromkeys(size for shape in shapes for size in shape if size > 1)
    if leading is not None and leading > 1:
        if any(leading in shape[1:] for shape in shapes):
            yield leading, True
        found = dict.fromkeys([leading, *found])
    yield from ((size, False) for size in list(found)[:_SIZES])
