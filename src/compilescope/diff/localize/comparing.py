"""Two runs of a part held against one another: which results, writes and gradients are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from compilescope.diff.config import ComparisonConfig
from compilescope.diff.judging import Judgement, judge
from compilescope.diff.localize.ranges import difference
from compilescope.torchapi.bisecting.copies import is_equal
from compilescope.torchapi.bisecting.evaluating import (
    Occasion,
    Reference,
    Results,
    run_exact,
    run_jittered,
    run_saturated,
)
from compilescope.torchapi.bisecting.parts import Part

Kind = Literal["output", "write", "gradient"]
_SEEDS = (1, 2, 3)
_AS_FAR = 4.0
"""Times what other roundings do to the reference: still rounding."""
_HOPELESS = 256.0
"""Times what one other rounding does: no further one will reach it."""


class Wrong(NamedTuple):
    """A result that is not what it should be."""

    kind: Kind
    number: int
    """Of the result, or of the input."""
    judgement: Judgement
    error: float | None
    """The largest difference, relative to the largest number."""


@dataclass
class Opinion:
    """Of one part, on one occasion."""

    wrong: list[Wrong]
    unknown: list[Wrong]
    differs: bool = False
    """Something is not the same bit for bit."""


def compare(
    part: Part,
    occasion: Occasion,
    reference: Reference,
    test: Results,
    config: ComparisonConfig,
    *,
    several: bool,
) -> Opinion:
    """`several`: errors of one operation reach others, which may enlarge them."""
    opinion = Opinion([], [])
    differing = list(_differing(reference.results, test))
    if not differing:
        return opinion
    opinion.differs = True
    exact = run_exact(part, occasion, reference)
    for kind, number, wanted, given in differing:
        truth = _side(exact, kind)[number] if exact is not None else None
        found = _judged(wanted, given, truth, config, reference.reduction)
        wrong = Wrong(kind, number, found, difference(wanted, given))
        if found.verdict == "fail":
            opinion.wrong.append(wrong)
        elif found.verdict == "unknown":
            opinion.unknown.append(wrong)
    if opinion.wrong and reference.overflowing:
        other = run_saturated(part, occasion)
        opinion.wrong = [w for w in opinion.wrong if not _is_other_answer(w, other, test)]
    if opinion.wrong and several:
        _excuse_rounding(part, occasion, reference.results, test, opinion)
    return opinion


def _differing(reference: Results, test: Results) -> Iterator[tuple[Kind, int, Any, Any]]:
    for number, wanted in enumerate(reference.outputs):
        given = test.outputs[number] if number < len(test.outputs) else None
        if not is_equal(wanted, given):
            yield "output", number, wanted, given
    for number, (wanted, given) in enumerate(zip(reference.after, test.after, strict=True)):
        if not is_equal(wanted, given):
            yield "write", number, wanted, given
    for number, (wanted, given) in enumerate(
        zip(reference.gradients or (), test.gradients or (), strict=False)
    ):
        if not is_equal(wanted, given):
            yield "gradient", number, wanted, given


def _side(results: Results, kind: Kind) -> list[Any]:
    if kind == "output":
        return results.outputs
    return results.after if kind == "write" else (results.gradients or [])


def _judged(
    wanted: Any, given: Any, exact: Any, config: ComparisonConfig, reduction: int | None
) -> Judgement:
    tensors = isinstance(wanted, torch.Tensor) and isinstance(given, torch.Tensor)
    if not tensors:
        if wanted is None and isinstance(given, torch.Tensor) and not bool(given.any()):
            return Judgement("pass", "no gradient, or all zeros")
        if given is None and isinstance(wanted, torch.Tensor) and not bool(wanted.any()):
            return Judgement("pass", "no gradient, or all zeros")
        return Judgement("fail", f"{_kind(given)}; the reference gives {_kind(wanted)}")
    if config.check_dtype and wanted.dtype != given.dtype:
        return Judgement("fail", f"its dtype is {given.dtype}, the reference's {wanted.dtype}")
    truth = exact if isinstance(exact, torch.Tensor) and exact.shape == wanted.shape else None
    return judge(wanted, given, truth, config, reduction=reduction)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "a tensor"
    return "nothing" if value is None else repr(value)[:40]


def _is_other_answer(wrong: Wrong, other: Results | None, test: Results) -> bool:
    """A number that an integer type cannot hold may become any: this one is often chosen."""
    if other is None:
        return False
    return is_equal(_side(other, wrong.kind)[wrong.number], _side(test, wrong.kind)[wrong.number])


def _excuse_rounding(
    part: Part, occasion: Occasion, reference: Results, test: Results, opinion: Opinion
) -> None:
    """What other roundings of the reference do as well is nobody's fault."""
    reach: dict[tuple[Kind, int], float] = {}
    far = {
        (w.kind, w.number): _apart(*(_side(r, w.kind)[w.number] for r in (reference, test)))
        for w in opinion.wrong
    }
    for seed in _SEEDS:
        other = run_jittered(part, occasion, seed)
        if other is None:
            return
        for kind, number in far:
            before, now = (_side(r, kind)[number] for r in (reference, other))
            reach[kind, number] = max(reach.get((kind, number), 0.0), _apart(before, now))
        if all(far[key] > _HOPELESS * reach[key] for key in far):
            break
    excused = {key for key in far if far[key] <= _AS_FAR * reach[key]}
    opinion.unknown += [w for w in opinion.wrong if (w.kind, w.number) in excused]
    opinion.wrong = [w for w in opinion.wrong if (w.kind, w.number) not in excused]


def _apart(one: Any, other: Any) -> float:
    """Whole numbers: how many differ. Others: how far the one that is farthest off is."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return 0.0 if one is None and other is None else float("inf")
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if not (one.is_floating_point() or one.is_complex()):
        return float((one != other).sum())
    found = difference(one, other)
    return float("inf") if found is None else found
