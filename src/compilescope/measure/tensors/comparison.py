"""How two tensors are compared: every figure from one pass, and a verdict.

Memory beside the two tensors is bounded, whatever their size (but a sparse or quantized tensor is
made dense first).

A tensor of any rank is seen as rows (all but its last dimension) and columns (the last); one of
rank 1 is read like a page, line after line.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from compilescope.measure.tensors.chunked_pass import ErrorTally, Profile, Rules
from compilescope.measure.tensors.native_pass import tally_of
from compilescope.measure.tensors.pairs import (
    ChunkNumbers,
    Incomparable,
    TensorPair,
    as_tensor,
    has_ulps,
    pair_up,
    shape_of,
    unravel,
)
from compilescope.measure.tensors.rounding import RoundingJudgement, judge_pair
from compilescope.measure.tensors.tolerances import ComparisonConfig, Tolerance
from compilescope.record.body import Verdict

_MOST_MAPPED = 1 << 20
"""Elements. Chosen: a map costs a second pass, by torch's own operations."""
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


class OlderNames:
    """The figures of a comparison by the names that users of older tools know.

    Each reads our own figures. Where a figure has no value, each says what it gives instead: an old
    script must not crash on it, and must not take it for a match.
    """

    name: str
    verdict: Any
    reason: str
    metrics: dict[str, float]
    worst: tuple[Any, ...]
    tolerance: Any
    allowed_mismatch: float
    shape: tuple[int, ...]
    dtype: str

    @property
    def max_absolute_error(self) -> float:
        """Infinite where an element is finite on one side only, or the shapes differ; NaN where
        the tensors can't be compared; 0 for empty tensors."""
        return self._error("max_abs")

    @property
    def mean_absolute_error(self) -> float:
        """As `max_absolute_error`."""
        return self._error("mean_abs")

    @property
    def rmse(self) -> float:
        """Root mean square error; as `max_absolute_error`."""
        return self._error("rmse")

    @property
    def max_relative_error(self) -> float:
        """Over the elements whose reference is not 0; otherwise as `max_absolute_error`."""
        return self._error("max_rel")

    @property
    def mean_relative_error(self) -> float:
        """As `max_relative_error`."""
        return self._error("mean_rel")

    @property
    def total_elements(self) -> int:
        """Elements of the reference."""
        return math.prod(self.shape)

    @property
    def mismatched_elements(self) -> int:
        """Elements outside the tolerance; all where nothing could be compared."""
        return int(self.metrics.get("mismatched", self.total_elements))

    @property
    def mismatch_count(self) -> int:
        """The same as `mismatched_elements`."""
        return self.mismatched_elements

    @property
    def mismatch_percentage(self) -> float:
        """Of the elements; 0 for empty tensors, 100 where nothing could be compared."""
        return self.metrics.get("mismatch_percentage", 0.0 if self.metrics else 100.0)

    @property
    def max_error_indices(self) -> tuple[int, ...] | None:
        """Where the largest error is; None where no element differs."""
        return tuple(self.worst[0].index) if self.worst else None

    @property
    def max_error_ref_value(self) -> Any:
        """The reference there; None where no element differs."""
        return self.worst[0].reference if self.worst else None

    @property
    def max_error_test_value(self) -> Any:
        """The test there; None where no element differs."""
        return self.worst[0].test if self.worst else None

    @property
    def passed_atol(self) -> bool:
        """The largest absolute error is at most atol. `passed` is the verdict, which decides."""
        return self.tolerance is not None and self.max_absolute_error <= self.tolerance.atol

    @property
    def passed_rtol(self) -> bool:
        """No more elements are outside atol + rtol * abs(reference) than the configuration allows.
        `passed` is the verdict, which decides."""
        return self.tolerance is not None and self.mismatch_percentage <= self.allowed_mismatch

    @property
    def error_message(self) -> str:
        """The reason, of what does not pass; else empty."""
        return "" if self.verdict == "pass" else self.reason

    def summary(self) -> str:
        """A few lines of plain text."""
        words = {"pass": "PASS", "fail": "FAIL"}.get(self.verdict, "INCONCLUSIVE")
        return "\n".join(
            (
                f"{self.name}: {words} ({self.reason})",
                f"  Shape: {self.shape}, Dtype: {self.dtype}",
                f"  Max Abs Error: {self.max_absolute_error:.6e}",
                f"  Mean Abs Error: {self.mean_absolute_error:.6e}",
                f"  Max Rel Error: {self.max_relative_error:.6e}",
                f"  RMSE: {self.rmse:.6e}",
                f"  Mismatched: {self.mismatched_elements}/{self.total_elements} "
                f"({self.mismatch_percentage:.4f} %)",
            )
        )

    def older_figures(self) -> dict[str, float]:
        """For JSON."""
        names = (
            *("max_absolute_error", "mean_absolute_error", "max_relative_error"),
            *("mean_relative_error", "rmse", "total_elements", "mismatched_elements"),
            "mismatch_percentage",
        )
        return {name: getattr(self, name) for name in names}

    def _error(self, figure: str) -> float:
        if not self.metrics:
            return math.nan if self.verdict == "unknown" else math.inf
        if self.metrics.get("disagreeing"):
            return math.inf
        return self.metrics.get(figure, 0.0)


@dataclass(frozen=True)
class TensorComparison(OlderNames):
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
    judgement: RoundingJudgement | None = None
    """How both sides stand to the float64 result; None where there was none."""
    errors: ErrorMap | None = None
    """Where they lie and how large they are, in small; None for what passes or is large."""
    tolerance: Tolerance | None = None
    """None where no element could be compared."""
    allowed_mismatch: float = 0.0
    """So many percent of the elements may lie outside the tolerance."""
    shape: tuple[int, ...] = ()
    """Of the reference."""
    dtype: str = ""
    test_shape: tuple[int, ...] = ()
    test_dtype: str = ""

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
            "test_shape": list(self.test_shape),
            "test_dtype": self.test_dtype,
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
    shape = shape_of(one)
    known: dict[str, Any] = {"name": name, "dtype": _named(one.dtype), "shape": shape}
    known.update(test_dtype=_named(other.dtype), test_shape=shape_of(other))
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
        allowed_mismatch=config.max_mismatch_percentage,
        judgement=judgement if exact is not None else None,
        errors=None if verdict == "pass" or tally.count > _MOST_MAPPED else map_errors(one, other),
        **_details(pair, tally),
        **known,
    )


def _named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _unlike(one: torch.Tensor, other: torch.Tensor, config: ComparisonConfig) -> str:
    if config.check_dtype and one.dtype != other.dtype:
        return f"its dtype is {other.dtype}, the reference's {one.dtype}"
    if config.check_layout and one.layout != other.layout:
        return f"its layout is {other.layout}, the reference's {one.layout}"
    if config.check_device and one.device != other.device:
        return f"it is on {other.device}, the reference on {one.device}"
    return ""


def _details(pair: TensorPair, tally: ErrorTally) -> dict[str, Any]:
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


def _element(pair: TensorPair, error: float | None, place: int) -> WorstElement:
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


_CHUNK = 1 << 14
"""As in `chunked_pass`: one thread of torch's."""
ENDLESS = 400
"""Where errors that are infinite are counted: beyond all that float64 holds."""


@dataclass(frozen=True)
class ErrorMap:
    """The largest absolute error in each cell of a grid, and a histogram of all errors."""

    rows: int
    columns: int
    cells: tuple[float, ...]
    """Row by row; infinite where one side only is finite."""
    row_size: int
    """Rows of the tensor; `rows` of the map share them evenly."""
    column_size: int
    histogram: tuple[tuple[int, int], ...]
    """(n, count): so many errors from 10**n up to 10**(n + 1)."""
    zeros: int
    """Elements without an error."""

    def lines(self) -> list[tuple[float, ...]]:
        width = self.columns
        return [self.cells[at * width : (at + 1) * width] for at in range(self.rows)]


def map_errors(reference: Any, test: Any, rows: int = 24, columns: int = 64) -> ErrorMap | None:
    """None where there is nothing to draw: no numbers, another shape, no element."""
    one, other = as_tensor(reference), as_tensor(test)
    if shape_of(one) != shape_of(other) or one.numel() == 0:
        return None
    try:
        pair = pair_up(one, other)
    except Incomparable:
        return None
    # Back to the order of the indices, which is the one that a reader knows.
    back = sorted(range(len(pair.order)), key=lambda at: pair.order[at])
    one, other = pair.reference.permute(back), pair.test.permute(back)
    width = _width(tuple(one.shape), columns)
    height = -(-one.numel() // width)
    grid = torch.zeros(min(height, rows), min(width, columns), dtype=torch.float64, device="cpu")
    counts: dict[int, int] = {}
    flat, twin = one.reshape(-1), other.reshape(-1)
    for start in range(0, flat.numel(), _CHUNK):
        end = start + _CHUNK
        part = ChunkNumbers.of(pair, flat[start:end], twin[start:end].to(flat.device))
        errors = part.errors.masked_fill(part.disagreeing(True), math.inf).cpu()
        place = torch.arange(start, start + errors.numel(), device="cpu")
        row = torch.div(place, width, rounding_mode="floor") * grid.shape[0] // height
        cell = row * grid.shape[1] + place % width * grid.shape[1] // width
        grid.view(-1).scatter_reduce_(0, cell, errors, "amax")
        _count(counts, errors)
    zeros = one.numel() - sum(counts.values())
    cells = tuple(grid.flatten().tolist())
    lines, across = grid.shape
    return ErrorMap(lines, across, cells, height, width, _sorted(counts), zeros)


def _width(shape: tuple[int, ...], columns: int) -> int:
    if len(shape) >= 2:
        return max(shape[-1], 1)
    count = math.prod(shape)
    return count if count <= columns else max(columns, math.isqrt(count))


def _count(counts: dict[int, int], errors: torch.Tensor) -> None:
    told = errors[(errors > 0) & torch.isfinite(errors)].log10().floor().long()
    values, many = told.unique(return_counts=True)
    for value, count in zip(values.tolist(), many.tolist(), strict=True):
        counts[value] = counts.get(value, 0) + count
    endless = int(torch.isinf(errors).sum())
    if endless:
        counts[ENDLESS] = counts.get(ENDLESS, 0) + endless


def _sorted(counts: dict[int, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(counts.items()))
