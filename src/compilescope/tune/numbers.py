"""Are a version's numbers those of the original? Both are held to float64, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from compilescope.model.body import Verdict

_FAR = 0.05
"""Relative: results of float64 that are farther from the original's are of another computation,
for instance with other random numbers. Chosen: rounding in bfloat16 stays well below it."""
_LOWER = 0.1
"""Relative: how far a candidate of lower precision may be off. Chosen: bfloat16 has 2 to 3 digits,
and the first steps of training double what it loses."""


class NumbersVerdict(NamedTuple):
    """What became of the comparison."""

    verdict: Verdict
    reason: str
    compared: int = 0


def read_steps(folder: Path) -> dict[str, Any]:
    """By step and path. What a child wrote is read, never run."""
    import torch

    found: dict[str, Any] = {}
    for file in sorted(folder.glob("step-*.pt")):
        kept = torch.load(file, weights_only=True, map_location="cpu")
        found |= {f"step {file.stem[5:]}: {path}": tensor for path, tensor in kept.items()}
    return found


def is_other_computation(reference: dict[str, Any], exact: dict[str, Any]) -> bool:
    """Does float64 compute something else altogether?"""
    return any(
        apart is not None and apart > _FAR for _, apart in _distances(reference, exact, "step 1:")
    )


def judge_numbers(
    reference: dict[str, Any],
    test: dict[str, Any],
    exact: dict[str, Any] | None,
    *,
    lower_precision: bool = False,
) -> NumbersVerdict:
    if lower_precision:
        return _judge_lower(reference, test)
    from compilescope.tensors.comparison import compare_tensors

    computed, worst = 0, NumbersVerdict("pass", "")
    for path, known, found in _pairs(reference, test):
        truth = exact.get(path) if exact is not None else None
        if truth is not None and truth.shape != known.shape:
            truth = None
        if _is_computed(known, truth):
            computed += 1
        if known.dtype == found.dtype and known.equal(found):
            continue
        compared = compare_tensors(known, found, path, exact=truth)
        if compared.verdict == "fail":
            return NumbersVerdict("fail", f"{path}: {compared.reason}", computed)
        if compared.verdict == "unknown" and worst.verdict == "pass":
            worst = NumbersVerdict("unknown", f"{path}: {compared.reason}")
    if not computed:
        reason = "no variable holds a result of the step when it ends"
        return NumbersVerdict("unknown", reason)
    if worst.verdict == "unknown":
        return worst._replace(compared=computed)
    how = "as near to float64 as the original's" if exact is not None else "as near as rounding is"
    return NumbersVerdict("pass", f"{computed} tensors are {how}", computed)


def _judge_lower(reference: dict[str, Any], test: dict[str, Any]) -> NumbersVerdict:
    """How far the first step is off; the second has an optimizer's step in it, which may turn the
    smallest gradient into a whole step."""
    worst, at, count = 0.0, "", 0
    for path, apart in _distances(reference, test, "step 1:"):
        if apart is None:
            return NumbersVerdict("fail", f"{path}: it is not finite, or of another shape", count)
        count += 1
        if apart > worst:
            worst, at = apart, path
    if not count:
        return NumbersVerdict("unknown", "no variable holds a result of the step when it ends")
    words = f"{at} is off by {worst:.2g} of its size" if at else "all are the same"
    return NumbersVerdict("pass" if worst <= _LOWER else "fail", words, count)


def _is_computed(known: Any, truth: Any) -> bool:
    """Inputs and weights that stay are what they are in float64 too."""
    if truth is None:
        return bool(known.is_floating_point())
    return bool(known.is_floating_point() and not known.double().equal(truth.double()))


def _pairs(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    for path, tensor in one.items():
        if path in other:
            yield path, tensor, other[path]


def _distances(
    one: dict[str, Any], other: dict[str, Any], step: str
) -> Iterator[tuple[str, float | None]]:
    """Of what may be rounded, but for gradients: training makes noise of the smallest."""
    for path, a, b in _pairs(one, other):
        if not path.startswith(step) or not a.is_floating_point() or "gradient of" in path:
            continue
        if a.shape != b.shape or not b.isfinite().all():
            yield path, None
            continue
        size = float(a.double().norm())
        yield path, float((a.double() - b.double()).norm()) / size if size else 0.0
