"""One tensor held against another: every figure from one pass, and a verdict.

Memory beside the two tensors is bounded, whatever their size (but a sparse or quantized tensor is
unfolded first).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from compilescope.diff.config import ComparisonConfig, Tolerance
from compilescope.diff.error_map import ErrorMap, map_errors
from compilescope.diff.fused import tally_of
from compilescope.diff.judging import Judgement, Verdict, judge_pair
from compilescope.diff.numbers import has_ulps
from compilescope.diff.pairs import Incomparable, Pair, as_tensor, pair_up, shape_of, unravel
from compilescope.diff.stretches import Rules
from compilescope.diff.tally import Profile, Tally

_MOST_MAPPED = 1 << 20
"""A map costs a second pass."""
Index = tuple[int, ...]
Number = int | float | complex | bool


@dataclass(frozen=True)
class WorstElement:
    """One element, and how far off it is."""

    index: Index
    reference: Number
    test: Number
    error: float
    """Absolute; infinite where only one side is finite."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "index": list(self.index),
            "reference": _plain(self.reference),
            "test": _plain(self.test),
            "error": _plain(self.error),
        }


@dataclass(frozen=True)
class DimensionProfile:
    """The error along one dimension."""

    dimension: int
    size: int
    starts: tuple[int, ...]
    """The first place of each entry; an entry is one place unless the dimension is long."""
    mean_abs: tuple[float, ...]
    max_abs: tuple[float, ...]
    mismatched: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}


@dataclass(frozen=True)
class TensorComparison:
    """What was found out about two tensors."""

    name: str
    verdict: Verdict
    reason: str
    metrics: dict[str, float] = field(default_factory=dict)
    worst: tuple[WorstElement, ...] = ()
    """By absolute error, largest first; none of them is 0."""
    worst_relative: WorstElement | None = None
    profiles: tuple[DimensionProfile, ...] = ()
    """One for each dimension; none for sparse and nested tensors."""
    disagreements: tuple[Index, ...] = ()
    """The first places where one side is not finite and the other is, or is something else."""
    nonfinite: tuple[Index, ...] = ()
    """The first places that are not finite on either side."""
    judgement: Judgement | None = None
    """How both sides stand to the float64 result; None where there was none."""
    errors: ErrorMap | None = None
    """Where they lie and how large they are, in small; None for what passes or is large."""
    tolerance: Tolerance | None = None
    shape: tuple[int, ...] = ()
    dtype: str = ""

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: what is not finite is written as text."""
        return {
            "name": self.name,
            "verdict": self.verdict,
            "reason": self.reason,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "tolerance": self.tolerance._asdict() if self.tolerance else None,
            "metrics": {name: _plain(value) for name, value in self.metrics.items()},
            "worst": [element.to_dict() for element in self.worst],
            "worst_relative": self.worst_relative.to_dict() if self.worst_relative else None,
            "profiles": [profile.to_dict() for profile in self.profiles],
            "disagreements": [list(index) for index in self.disagreements],
            "nonfinite": [list(index) for index in self.nonfinite],
            "judgement": self.judgement.to_dict() if self.judgement else None,
        }


def compare_tensors(
    reference: Any,
    test: Any,
    name: str = "tensor",
    config: ComparisonConfig | None = None,
    *,
    exact: Any = None,
) -> TensorComparison:
    """Tensors, or plain numbers. `exact` is the same result computed in float64, if it is known:
    then it decides what is rounding and what is wrong."""
    config = config or ComparisonConfig()
    one, other = as_tensor(reference), as_tensor(test)
    dtype, shape = str(one.dtype).removeprefix("torch."), shape_of(one)
    known: dict[str, Any] = {"name": name, "dtype": dtype, "shape": shape}
    if shape != shape_of(other):
        reason = f"its shape is {list(shape_of(other))}, the reference's {list(shape)}"
        return TensorComparison(verdict="fail", reason=reason, **known)
    try:
        pair = pair_up(one, other)
    except Incomparable as error:
        return TensorComparison(verdict="unknown", reason=str(error), **known)
    tolerance = config.tolerance(pair.dtype)
    rules = Rules(tolerance, config.equal_nan, config.worst, config.profile_bins)
    tally = tally_of(pair, rules, config)
    judgement = judge_pair(pair, tally, None if exact is None else as_tensor(exact), config)
    verdict: Verdict = judgement.verdict
    reason = judgement.reason
    unlike = _unlike(one, other, config)
    if unlike:
        verdict, reason = "fail", f"{unlike}; {reason}"
    return TensorComparison(
        verdict=verdict,
        reason=reason,
        metrics=tally.metrics(ulps=has_ulps(pair.dtype) and one.dtype == other.dtype),
        tolerance=tolerance,
        judgement=judgement if exact is not None else None,
        errors=None if verdict == "pass" or tally.count > _MOST_MAPPED else map_errors(one, other),
        **_details(pair, tally),
        **known,
    )


def _unlike(one: torch.Tensor, other: torch.Tensor, config: ComparisonConfig) -> str:
    if config.check_dtype and one.dtype != other.dtype:
        return f"its dtype is {other.dtype}, the reference's {one.dtype}"
    if config.check_layout and one.layout != other.layout:
        return f"its layout is {other.layout}, the reference's {one.layout}"
    if config.check_device and one.device != other.device:
        return f"it is on {other.device}, the reference on {one.device}"
    return ""


def _details(pair: Pair, tally: Tally) -> dict[str, Any]:
    profiles = []
    if pair.places is None:
        by_dimension = sorted(zip(pair.order, tally.profiles, strict=True), key=lambda p: p[0])
        profiles = [_profile(dim, profile, tally.count) for dim, profile in by_dimension]
    relative = tally.worst_relative
    return {
        "worst": tuple(_element(pair, error, place) for error, place in tally.worst),
        "worst_relative": _element(pair, None, relative[1]) if relative else None,
        "profiles": tuple(profiles),
        "disagreements": tuple(pair.index_of(place) for place in tally.disagreements),
        "nonfinite": tuple(pair.index_of(place) for place in tally.nonfinite),
    }


def _element(pair: Pair, error: float | None, place: int) -> WorstElement:
    at = unravel(place, pair.shape)
    one, other = pair.reference[at].item(), pair.test[at].item()
    if error is None:
        error = abs(one - other)
    return WorstElement(pair.index_of(place), one, other, float(error))


def _profile(dimension: int, profile: Profile, count: int) -> DimensionProfile:
    starts = profile.starts()
    ends = [*starts[1:], profile.size][: len(starts)]
    each = count // profile.size if profile.size else 0
    widths = [(end - start) * each for start, end in zip(starts, ends, strict=True)]
    means = [t / width if width else 0.0 for t, width in zip(profile.total, widths, strict=True)]
    return DimensionProfile(
        dimension,
        profile.size,
        tuple(starts),
        tuple(means),
        tuple(profile.largest),
        tuple(profile.mismatched),
    )


def _plain(value: Number) -> Any:
    if isinstance(value, complex):
        return [_plain(value.real), _plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
