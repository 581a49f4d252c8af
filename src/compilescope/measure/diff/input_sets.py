"""The sets of inputs of a comparison: those that were given, and generated ones of the same form.

What a model accepts is known only to the model: generated whole numbers stay within the range of
the example's, masks are shuffled, and a set on which the reference fails is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from compilescope.base.errors import ToolError
from compilescope.base.objects import call_arguments, call_theirs, model_and_inputs
from compilescope.instrument.torchapi.trials.backends import Compile
from compilescope.measure.tensors.copies import CopiedArguments, is_plain
from compilescope.measure.tensors.structure import argument_leaves
from compilescope.measure.tensors.tolerances import is_same_value
from compilescope.record.body import Verdict

_MOST_SHAPES = 2
"""Chosen: what fits in a cell of a table, as the next."""
_MOST_COMPILES = 3
"""Chosen likewise."""
Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class InputSet:
    """One set of inputs, and what came of it."""

    number: int
    words: str
    """What sets it apart from the first; empty for the first."""
    verdict: Verdict
    compiles: tuple[Compile, ...] = ()
    """What Dynamo compiled for it; none where the compiled code of earlier sets served."""
    skipped: bool = False

    @property
    def label(self) -> str:
        return f"input {self.number}" + (f" ({self.words})" if self.words else "")

    @property
    def compiled(self) -> str:
        """`recompiled 0/1 (forward): size mismatch ...; symbolic sizes`."""
        if self.skipped:
            return "skipped"
        if not self.compiles:
            return "no new compile"
        shown = [_compile_words(each) for each in self.compiles[:_MOST_COMPILES]]
        more = len(self.compiles) - len(shown)
        return "; ".join([*shown, f"and {more} more"] if more else shown)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "input": self.number,
            "words": self.words,
            "verdict": self.verdict,
            "skipped": self.skipped,
            "compiles": [each.to_dict() for each in self.compiles],
        }


def _compile_words(found: Compile) -> str:
    sizes = ", symbolic sizes" if found.symbolic else ""
    name = " ".join(filter(None, (found.compile_id, found.function and f"of {found.function}")))
    if not found.recompiled:
        return f"compiled {name}{sizes}".rstrip()
    reason = f" ({found.reason})" if found.reason else ""
    return f"recompiled {name}{sizes}{reason}"


class GivenInputs(NamedTuple):
    """One more set of inputs."""

    words: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    generated: bool
    """By us: the model may not take it."""


def further_sets(
    first: CopiedArguments, given: Sequence[Call], generated: int, seed: int
) -> Iterator[GivenInputs]:
    """Those that were given; one that repeats an earlier set makes room for a generated one."""
    known: list[Call] = [(first.args, first.kwargs)]
    spare = 0
    for each in given:
        if any(_are_same(each, other) for other in known):
            spare += 1
            continue
        known.append(each)
        yield GivenInputs(_difference(known[0], each), *each, generated=False)
    for variant in variants(first, spare + generated, seed):
        yield GivenInputs(variant.words, variant.args, variant.kwargs, generated=True)


def have_one_shape(sets: Sequence[Call]) -> bool:
    """Do they differ in their values alone?"""
    return len(sets) > 1 and all(_shapes(each) == _shapes(sets[0]) for each in sets[1:])


def built(build: Callable[..., Any], times: int, name: str) -> tuple[Any, list[Call]]:
    """The model of the first call of a builder, and the inputs of all calls."""
    model: Any = None
    sets: list[Call] = []
    for number in range(times):
        made = call_theirs(build, f"{name} failed" + (f" in call {number + 1}" if number else ""))
        found, inputs, kwargs = model_and_inputs(made, name)
        model = found if number == 0 else model
        sets.append(call_arguments(inputs, kwargs))
    return model, sets


def refuse_failing(error: ToolError, number: int) -> ToolError:
    """For a set that the user gave, and the reference does not take."""
    return ToolError(
        f"Input {number}: {error.message[:1].lower()}{error.message[1:]}",
        hint=error.hint or "Every set of inputs goes to the model of the first.",
    )


def _are_same(one: Call, other: Call) -> bool:
    mine, theirs = argument_leaves(*one), argument_leaves(*other)
    if mine.keys() != theirs.keys():
        return False
    return all(is_same_value(value, theirs[name], unclear=False) for name, value in mine.items())


def _shapes(call: Call) -> dict[str, str]:
    """What a guard would look at: shapes and dtypes, and plain values as they are."""
    return {name: _described(leaf) for name, leaf in argument_leaves(*call).items()}


def _described(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{list(leaf.shape)}"
    return repr(leaf)[:40] if isinstance(leaf, (bool, int, float, str, type(None))) else ""


def _difference(first: Call, other: Call) -> str:
    before, now = _shapes(first), _shapes(other)
    changed = [f"{name} is {said}" for name, said in now.items() if before.get(name) != said]
    if not changed:
        return "other values" if before.keys() == now.keys() else "other arguments"
    more = f" and {len(changed) - _MOST_SHAPES} more" if len(changed) > _MOST_SHAPES else ""
    return ", ".join(changed[:_MOST_SHAPES]) + more


_FEW = 4
"""A tensor with no more different numbers than these is a mask or a flag. Chosen: 0, 1, -1 and one
to spare; of such a tensor other numbers would make no sense."""
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 1e-30, 1e4, -1e4, float("inf"), -float("inf"), float("nan"))


class InputVariant(NamedTuple):
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


def variants(arguments: CopiedArguments, count: int, seed: int) -> Iterator[InputVariant]:
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
        yield InputVariant(flavour.words, args, kwargs)


def _leading(arguments: CopiedArguments) -> int | None:
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
            places = torch.randint(
                0, values.numel(), (len(_SPECIAL),), generator=generator, device="cpu"
            )
            flat = values.reshape(-1)
            flat[places] = torch.tensor(_SPECIAL, dtype=torch.float64, device="cpu")
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
    noise = torch.randn(shape, generator=generator, dtype=torch.float64, device="cpu")
    return noise * (spread or 1.0) + mean


def _in_range(
    flat: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator
) -> torch.Tensor:
    if not flat.numel():
        return torch.zeros(shape, dtype=flat.dtype, device="cpu")
    low, high = int(flat.min()), int(flat.max())
    return torch.randint(low, high + 1, shape, generator=generator, device="cpu")


def _shuffled(
    flat: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator
) -> torch.Tensor:
    """Drawn from the numbers that are there."""
    if not flat.numel():
        return torch.zeros(shape, dtype=flat.dtype, device="cpu")
    return flat[torch.randint(0, flat.numel(), shape, generator=generator, device="cpu")]
