"""Decides whether a part is wrong, from two runs of it: its results, in-place writes and gradients.

In a part of several operations, a difference that other roundings reach as well is not held to be
wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch

from compilescope.diff.localize.graph_parts.part_runs import (
    PartCall,
    Reference,
    Results,
    run_exact,
    run_jittered,
    run_saturated,
)
from compilescope.diff.localize.graph_parts.parts import GraphPart
from compilescope.tensors.distances import is_same, is_same_value, relative_error
from compilescope.tensors.rounding import RoundingJudgement, judge
from compilescope.tensors.tolerances import ComparisonConfig

ResultKind = Literal["output", "write", "gradient"]
_SEEDS = (1, 2, 3)
"""Three other roundings: the figures of `_AS_FAR` are measured with these very ones. Each costs a
run of the part."""
_AS_FAR = 4.0
"""Times what other roundings do to the reference: still rounding. The median of what is right is
0.5, of what is wrong 100 (benchmarks/rounding_limits.py); only what `judge` finds wrong in several
operations together is asked."""
_HOPELESS = 256.0
"""Times what one other rounding does: no further one will reach it. Chosen far above `_AS_FAR`,
since three roundings of one computation reach about as far."""


class WrongResult(NamedTuple):
    """A result that is not what it should be."""

    kind: ResultKind
    number: int
    """Of the result, or of the input."""
    judgement: RoundingJudgement
    error: float | None
    """The largest difference, relative to the largest number."""


@dataclass
class PartVerdict:
    """Of one part, on one occasion."""

    wrong: list[WrongResult]
    unknown: list[WrongResult]
    differs: bool = False
    """Something is not the same bit for bit."""


def compare(
    part: GraphPart,
    occasion: PartCall,
    reference: Reference,
    test: Results,
    config: ComparisonConfig,
    *,
    several: bool,
) -> PartVerdict:
    """`several`: errors of one operation reach others, which may enlarge them."""
    verdict = PartVerdict([], [])
    differing = list(_differing(reference.results, test))
    if not differing:
        return verdict
    verdict.differs = True
    exact = run_exact(part, occasion, reference)
    for kind, number, wanted, given in differing:
        truth = _side(exact, kind)[number] if exact is not None else None
        found = _judged(wanted, given, truth, config, reference.reduction)
        wrong = WrongResult(kind, number, found, relative_error(wanted, given))
        if found.verdict == "fail":
            verdict.wrong.append(wrong)
        elif found.verdict == "unknown":
            verdict.unknown.append(wrong)
    if verdict.wrong and reference.overflowing:
        other = run_saturated(part, occasion)
        verdict.wrong = [w for w in verdict.wrong if not _is_other_answer(w, other, test)]
    if verdict.wrong and several:
        _excuse_rounding(part, occasion, reference.results, test, verdict)
    return verdict


def _differing(reference: Results, test: Results) -> Iterator[tuple[ResultKind, int, Any, Any]]:
    for number, wanted in enumerate(reference.outputs):
        given = test.outputs[number] if number < len(test.outputs) else None
        if not _is_equal(wanted, given):
            yield "output", number, wanted, given
    for number, (wanted, given) in enumerate(zip(reference.after, test.after, strict=True)):
        if not _is_equal(wanted, given):
            yield "write", number, wanted, given
    for number, (wanted, given) in enumerate(
        zip(reference.gradients or (), test.gradients or (), strict=False)
    ):
        if not _is_equal(wanted, given):
            yield "gradient", number, wanted, given


def _side(results: Results, kind: ResultKind) -> list[Any]:
    if kind == "output":
        return results.outputs
    return results.after if kind == "write" else (results.gradients or [])


def _judged(
    wanted: Any, given: Any, exact: Any, config: ComparisonConfig, reduction: int | None
) -> RoundingJudgement:
    tensors = isinstance(wanted, torch.Tensor) and isinstance(given, torch.Tensor)
    if not tensors:
        if wanted is None and isinstance(given, torch.Tensor) and not bool(given.any()):
            return RoundingJudgement("pass", "no gradient, or all zeros")
        if given is None and isinstance(wanted, torch.Tensor) and not bool(wanted.any()):
            return RoundingJudgement("pass", "no gradient, or all zeros")
        return RoundingJudgement("fail", f"{_kind(given)}; the reference gives {_kind(wanted)}")
    if config.check_dtype and wanted.dtype != given.dtype:
        return RoundingJudgement(
            "fail", f"its dtype is {given.dtype}, the reference's {wanted.dtype}"
        )
    truth = exact if isinstance(exact, torch.Tensor) and exact.shape == wanted.shape else None
    return judge(wanted, given, truth, config, reduction=reduction)


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "a tensor"
    return "nothing" if value is None else repr(value)[:40]


def _is_other_answer(wrong: WrongResult, other: Results | None, test: Results) -> bool:
    """A number that an integer type cannot hold may become any: this one is often chosen."""
    if other is None:
        return False
    return _is_equal(_side(other, wrong.kind)[wrong.number], _side(test, wrong.kind)[wrong.number])


def _excuse_rounding(
    part: GraphPart, occasion: PartCall, reference: Results, test: Results, verdict: PartVerdict
) -> None:
    """What other roundings of the reference do as well is nobody's fault."""
    reach: dict[tuple[ResultKind, int], float] = {}
    far = {
        (w.kind, w.number): _apart(*(_side(r, w.kind)[w.number] for r in (reference, test)))
        for w in verdict.wrong
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
    verdict.unknown += [w for w in verdict.wrong if (w.kind, w.number) in excused]
    verdict.wrong = [w for w in verdict.wrong if (w.kind, w.number) not in excused]


def _apart(one: Any, other: Any) -> float:
    """Whole numbers: how many differ. Others: how far the one that is farthest off is."""
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return 0.0 if one is None and other is None else float("inf")
    if one.shape != other.shape or one.dtype != other.dtype:
        return float("inf")
    if not (one.is_floating_point() or one.is_complex()):
        return float((one != other).sum())
    found = relative_error(one, other)
    return float("inf") if found is None else found


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return is_same(one, other)
    return type(one) is type(other) and is_same_value(one, other, unclear=False)
