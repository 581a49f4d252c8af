"""How far the limits of `tensors/rounding.py`, `diff/rounds.py`, `diff/runs/sides.py` and
`diff/localize/probes.py` are from what rounding does, and from what mistakes do.

Takes the operations of tests/tensors/test_rounding.py, each written another way and wrongly,
on fresh random inputs of the same kind in float32, float16 and bfloat16:

    python benchmarks/rounding_limits.py [--seeds 5]

A limit is well set if it is above the largest figure of what is right, and below the smallest of
what is wrong. Between the two, the verdict is "unknown".
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "tensors"))
from test_rounding import DTYPES, RIGHT, WRONG

from compilescope.instrument.torchapi.trials.reruns import Jitter
from compilescope.measure.diff import rounds
from compilescope.measure.diff.localize import probes
from compilescope.measure.diff.runs import sides
from compilescope.measure.tensors import rounding
from compilescope.measure.tensors.pairs import pair_up
from compilescope.measure.tensors.tolerances import relative_distance, relative_error

Operation = Callable[..., torch.Tensor]
REDUCTION = 512
"""The longest sum among the operations."""


class Case(NamedTuple):
    name: str
    op: Operation
    other: Operation
    inputs: tuple[torch.Tensor, ...]
    dtype: torch.dtype
    right: bool


def cases(seeds: int) -> Iterator[Case]:
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        for name, (op, other, inputs) in RIGHT.items():
            for dtype in DTYPES:
                yield Case(name, op, other, fresh(inputs, generator, dtype), dtype, True)
        for name, (op, other, inputs, dtypes) in WRONG.items():
            for dtype in dtypes:
                yield Case(name, op, other, fresh(inputs, generator, dtype), dtype, False)


def fresh(
    inputs: tuple[torch.Tensor, ...], generator: torch.Generator, dtype: torch.dtype
) -> tuple[torch.Tensor, ...]:
    """Other numbers of the same mean and spread."""
    return tuple(
        (torch.randn(x.shape, generator=generator) * x.std() + x.mean()).to(dtype) for x in inputs
    )


def nudged(inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """By one unit in the last place, at random up or down."""
    generator = torch.Generator().manual_seed(0)
    signs = [torch.randint(0, 2, x.shape, generator=generator) * 2.0 - 1 for x in inputs]
    units = [torch.finfo(x.dtype).eps for x in inputs]
    moved = zip(inputs, signs, units, strict=True)
    return [(x.double() * (1 + sign.double() * unit)).to(x.dtype) for x, sign, unit in moved]


def ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def pool_figures(case: Case) -> Iterator[tuple[str, float]]:
    """Error by what is allowed (1: the limit of "pass"), and by what is surely wrong."""
    reference, test = case.op(*case.inputs), case.other(*case.inputs)
    pair = pair_up(reference, test)
    exact = case.op(*(x.double() for x in case.inputs)).permute(pair.order)
    found = list(rounding.pool_tests(rounding.gather(pair, exact), case.dtype, REDUCTION))
    kind = "float32" if case.dtype is torch.float32 else "16 bits"
    worst = max(found, key=lambda test: (test.ratio > 1, test.evidence, test.ratio))
    yield f"worst pool by what is allowed, {kind}", worst.ratio
    yield f"worst pool by what fails, {kind}", worst.evidence


def distance_figures(case: Case) -> Iterator[tuple[str, float | None]]:
    reference, test = case.op(*case.inputs), case.other(*case.inputs)
    moved = relative_distance(reference, case.op(*nudged(case.inputs)))
    apart = relative_distance(reference, test)
    if case.dtype is torch.float32:
        yield "difference by the answer to 1 ulp (float32)", ratio(apart, moved)
    if case.right:
        exact = relative_distance(reference, case.op(*(x.double() for x in case.inputs)))
        kind = "float32" if case.dtype is torch.float32 else "16 bits"
        limit = sides._limit(case.dtype)
        yield f"float64 run: distance by its limit, {kind}", ratio(exact, limit)
        yield f"float64 run: distance by the answer to 1 ulp, {kind}", ratio(exact, moved)
    yield "difference by what 3 jittered runs do", ratio(far(case, test), jittered(case))


def far(case: Case, test: torch.Tensor) -> float | None:
    return relative_error(case.op(*case.inputs), test)


def jittered(case: Case) -> float:
    found = []
    for seed in probes._SEEDS:
        with Jitter(seed):
            moved = case.op(*case.inputs)
        found.append(relative_error(case.op(*case.inputs), moved) or 0.0)
    return max(found)


def narrowed_figures(case: Case) -> Iterator[tuple[str, float | None, bool]]:
    """In float64: another way to write it, and the same computed in float32."""
    if not case.right or case.dtype is not torch.float32:
        return
    wide = tuple(x.double() for x in case.inputs)
    reference = case.op(*wide)
    moved = relative_distance(reference, case.op(*nudged(wide)))
    narrow = case.op(*case.inputs).double()
    name = "float64: difference by the answer to 1 ulp"
    # Some of the other ways compute in float32 on purpose: only those in float64 count as right.
    other = case.other(*wide)
    apart = relative_distance(reference, other)
    if apart is not None and apart < rounds._SURE:
        yield name, ratio(apart, moved), True
    yield name, ratio(relative_distance(reference, narrow), moved), False


LIMITS: dict[str, str] = {
    "worst pool by what is allowed, float32": "1: floors, _AS_LARGE, _AS_MEAN, _AS_SLICE",
    "worst pool by what is allowed, 16 bits": "1: floors, _AS_LARGE, _AS_MEAN, _AS_SLICE",
    "worst pool by what fails, float32": "1: _SURELY_LARGE, _SURELY_MEAN",
    "worst pool by what fails, 16 bits": "1: _SURELY_LARGE, _SURELY_MEAN",
    "difference by the answer to 1 ulp (float32)": f"1 passes, {rounds._UNSURE} unknown",
    "float64 run: distance by its limit, float32": "1: _FAR, _FARTHEST",
    "float64 run: distance by its limit, 16 bits": "1: _FAR, _FARTHEST",
    "float64 run: distance by the answer to 1 ulp, float32": f"{sides._WIDE_GROWTH}",
    "float64 run: distance by the answer to 1 ulp, 16 bits": f"{sides._NARROW_GROWTH}",
    "difference by what 3 jittered runs do": f"{probes._AS_FAR}",
    "float64: difference by the answer to 1 ulp": f"{rounds._GROWTH:g}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    found: dict[tuple[str, bool], list[tuple[float, str]]] = defaultdict(list)

    def note(name: str, value: Any, case: Case, right: bool) -> None:
        if value is not None:
            where = f"{case.name}, {str(case.dtype).removeprefix('torch.')}"
            found[name, right].append((value, where))

    for case in cases(options.seeds):
        for name, value in (*pool_figures(case), *distance_figures(case)):
            note(name, value, case, case.right)
        for name, value, right in narrowed_figures(case):
            note(name, value, case, right)
    for name, limit in LIMITS.items():
        print(f"{name}   limit {limit}")
        for right, words, pick in ((True, "right: at most", max), (False, "wrong: at least", min)):
            values = found.get((name, right))
            if values:
                value, where = pick(values)
                middle = statistics.median(value for value, _ in values)
                print(f"    {words} {value:<9.3g} ({where}); median {middle:.3g} of {len(values)}")


if __name__ == "__main__":
    main()
