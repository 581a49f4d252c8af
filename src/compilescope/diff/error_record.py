"""Errors of one tensor in the small form that a record carries."""

from __future__ import annotations

import math

from compilescope.diff.error_map import ENDLESS, ErrorMap
from compilescope.diff.metrics import DimensionProfile, TensorComparison
from compilescope.model.outcomes import ErrorGrid, ErrorProfile

_LEVELS = 8
_PLACES = 3


def error_grid(found: ErrorMap | None) -> ErrorGrid | None:
    if found is None:
        return None
    known = [value for value in found.cells if 0 < value < math.inf]
    low, high = min(known, default=1.0), max(known, default=1.0)
    lines = tuple("".join(_level(v, low, high) for v in line) for line in found.lines())
    histogram = tuple((n, count) for n, count in found.histogram if n < ENDLESS)
    return ErrorGrid(
        lines, low, high, found.row_size, found.column_size, histogram, zeros=found.zeros
    )


def error_profiles(found: TensorComparison) -> tuple[ErrorProfile, ...]:
    return tuple(_profile(profile) for profile in found.profiles if profile.size > 1)


def _profile(profile: DimensionProfile) -> ErrorProfile:
    ends = (*profile.starts[1:], profile.size)
    largest = [value if math.isfinite(value) else 0.0 for value in profile.max_abs]
    entries = [
        (start, end - start, error, wrong)
        for start, end, error, wrong in zip(
            profile.starts, ends, largest, profile.mismatched, strict=True
        )
    ]
    entries.sort(key=lambda entry: (-entry[3], -entry[2], entry[0]))
    half = max(largest, default=0.0) / 2
    many = sum(value > half for value in largest)
    worst = tuple(entry for entry in entries[:_PLACES] if entry[2] or entry[3])
    return ErrorProfile(profile.dimension, profile.size, worst, many)


def _level(value: float, low: float, high: float) -> str:
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return str(_LEVELS + 1)
    if high <= low:
        return str(_LEVELS)
    share = math.log(value / low) / math.log(high / low)
    return str(1 + round(share * (_LEVELS - 1)))
