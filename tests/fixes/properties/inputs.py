"""Tensors as a program may be given them: any dtype, size, layout and value, with and without grad.

Sizes go together: each is the widest one, or one that broadcasts to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from hypothesis import strategies as st

SHAPES = ((), (1,), (3,), (0,), (2, 3), (3, 3), (4, 1), (2, 0), (2, 3, 2), (1000,))
DTYPES = {
    "any": ("float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"),
    "float": ("float32", "float64", "float16", "bfloat16"),
    "float32": ("float32",),
    "bool": ("bool",),
    "index": ("int64",),
}
LAYOUTS = ("plain", "strided", "transposed", "expanded")
NUMBERS = (0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 4.0)
ODD = (float("nan"), float("inf"), -float("inf"), -0.0, 400.0)
"""Small enough for every sum of the others to be exact; these are what a fix has to think of."""


@dataclass(frozen=True)
class TensorKind:
    """What Dynamo guards on: a run has shown it to the fix."""

    dtype: str
    shape: tuple[int, ...]
    layout: str
    grad: bool


@dataclass(frozen=True)
class DrawnTensor:
    """A kind, and the numbers: they are repeated until it is full."""

    kind: TensorKind
    numbers: tuple[float, ...]

    def made(self) -> torch.Tensor:
        """A new one each time, always the same."""
        kind = self.kind
        dtype = getattr(torch, kind.dtype)
        shape = kind.shape
        count = 1
        for size in shape:
            count *= size
        flat = torch.tensor([self.numbers[i % len(self.numbers)] for i in range(count)])
        if not dtype.is_floating_point:
            flat = flat.nan_to_num(7.0, 9.0, 5.0).abs()
        tensor = flat.to(dtype).reshape(shape)
        if shape and kind.layout == "transposed":
            tensor = tensor.mT.contiguous().mT if len(shape) > 1 else tensor
        elif shape and kind.layout == "strided":
            tensor = torch.stack([tensor, tensor], -1)[..., 0]
        elif shape and shape[0] and kind.layout == "expanded":
            tensor = tensor[:1].expand(shape)
        return tensor.detach().requires_grad_(kind.grad)


def drawn(takes: Sequence[str]) -> st.SearchStrategy[tuple[DrawnTensor, ...]]:
    """One tensor for each: `any`, `float`, `bool`, `index`. `whole:any` has the widest size,
    `vector:any` two elements, `one:any` no dimensions; `still:any` begins without a gradient."""
    return st.composite(_drawn)(takes=tuple(takes))


def drawn_as(kinds: Sequence[TensorKind]) -> st.SearchStrategy[tuple[DrawnTensor, ...]]:
    """Other numbers in tensors of these kinds."""
    return st.tuples(*(st.builds(DrawnTensor, st.just(kind), _numbers(kind)) for kind in kinds))


def _numbers(kind: TensorKind) -> st.SearchStrategy[tuple[float, ...]]:
    pool = st.sampled_from(NUMBERS)
    if "float" in kind.dtype:
        pool = st.one_of(pool, pool, st.sampled_from(ODD))
    return st.lists(pool, min_size=1, max_size=6).map(tuple)


def _drawn(draw: st.DrawFn, takes: tuple[str, ...]) -> tuple[DrawnTensor, ...]:
    widest = draw(st.sampled_from(SHAPES))
    dtype = ""
    made = []
    for name in takes:
        role, _, of = name.rpartition(":")
        # Mostly all of one dtype: what is mixed seldom computes at all.
        if dtype not in DTYPES[of] or draw(st.integers(0, 4)) == 0:
            dtype = draw(st.sampled_from(DTYPES[of]))
        made.append(draw(_tensor(_shape(draw, role, widest), dtype)))
    return tuple(made)


def _shape(draw: st.DrawFn, role: str, widest: tuple[int, ...]) -> tuple[int, ...]:
    if role == "one":
        return ()
    if role == "vector":
        return (2,)
    if role == "whole":
        return widest
    shape = tuple(draw(st.sampled_from((size, size, size, 1))) for size in widest)
    return shape[draw(st.sampled_from((0, 0, 0, len(shape)))) :]


@st.composite
def _tensor(draw: st.DrawFn, shape: tuple[int, ...], dtype: str) -> DrawnTensor:
    floating = "float" in dtype
    kind = TensorKind(
        dtype, shape, draw(st.sampled_from(LAYOUTS)), floating and draw(st.booleans())
    )
    return DrawnTensor(kind, draw(_numbers(kind)))
