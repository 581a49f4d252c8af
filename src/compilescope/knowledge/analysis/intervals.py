"""What repeated runs say of a latency and of a ratio of two, each with its 95 % interval.

Runs come in rows, one for each process. A process has luck of its own (memory layout, placement of
its threads) that no interval from within it shows, so an interval over several processes holds
that of all runs together and Student's for the rows' medians; two rows are too few for Student, so
there each row's own is within it instead.

The methods were chosen by simulation, see benchmarks/bench_intervals.py: SciPy's bootstrap of a
median covers 72 to 94 % where it promises 95 % for three to ten runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

Rows = Sequence[Sequence[float]]
Interval = tuple[float, float]

LEAST = 3
"""With fewer runs there is no interval. Chosen with benchmarks/bench_intervals.py, which simulates
benchmarks of 3 runs and more."""
_EXACT = 6
"""From here on two order statistics hold the median with 95 %: the lowest and highest of six do
with 1 - 2 / 2**6, which is 97 %; those of five with 94 %."""
_LEVEL = 0.95
"""What statistics usually promise; docs/guides/bench.md shows what it came to."""
_RESAMPLES = 4999
"""Of a bootstrap. Chosen: half of SciPy's own default, 9,999, for half of the time."""
_FENCE = 1.5
"""Tukey's: this many interquartile ranges beyond the quartiles. As in any box plot."""


@dataclass(frozen=True)
class Summary:
    """All runs of all rows."""

    median: float
    mean: float
    std: float | None
    """Of one run; None for a single one."""
    p90: float
    ci: Interval | None
    """Of the median."""
    outliers: int
    """Runs beyond Tukey's fences of their own row. They count like the others."""


@dataclass(frozen=True)
class Ratio:
    """median(base) / median(other), with its interval where there are runs enough."""

    value: float
    low: float | None
    high: float | None


def summarize(runs_ms: Rows) -> Summary | None:
    """None where nothing was measured. What is no positive number is no run."""
    np = _numpy()
    rows = [row for row in (_measured(row) for row in runs_ms) if row.size]
    if not rows:
        return None
    runs = np.concatenate(rows)
    ci = _joined([np.log(row) for row in rows], _median_interval)
    return Summary(
        median=float(np.median(runs)),
        mean=float(np.mean(runs)),
        std=float(np.std(runs, ddof=1)) if runs.size > 1 else None,
        p90=float(np.quantile(runs, 0.9)),
        ci=None if ci is None else _exp(_around(ci, float(np.log(np.median(runs))))),
        outliers=sum(_outliers(row) for row in rows),
    )


def ratio(base: Rows, other: Rows, *, paired: bool) -> Ratio | None:
    """Above 1: `other` is faster. `paired`: run n of a row of one was taken in the same round as
    run n of that row of the other, so that what slows both down at once cancels out."""
    np = _numpy()
    ours = [row for row in (_measured(row) for row in base) if row.size]
    theirs = [row for row in (_measured(row) for row in other) if row.size]
    if not ours or not theirs:
        return None
    value = float(np.median(np.concatenate(ours)) / np.median(np.concatenate(theirs)))
    ci = _paired(base, other) if paired else _unpaired(ours, theirs)
    if ci is None:
        return Ratio(value, None, None)
    low, high = _exp(_around(ci, float(np.log(value))))
    return Ratio(value, low, high)


def _paired(base: Rows, other: Rows) -> Interval | None:
    """By the quotient of each round."""
    np = _numpy()
    rows: list[Array] = []
    for one, two in zip(base, other, strict=False):
        both = min(len(one), len(two))
        logs = np.log(_positive(one[:both])) - np.log(_positive(two[:both]))
        rows.append(logs[np.isfinite(logs)])
    return _joined([row for row in rows if row.size], _median_interval)


def _unpaired(ours: list[Array], theirs: list[Array]) -> Interval | None:
    """By all runs together and by the rows' medians; where there are too few rows for that, by each
    row of one with each row of the other."""
    np = _numpy()
    ours, theirs = [np.log(row) for row in ours], [np.log(row) for row in theirs]
    found = [_difference_interval(np.concatenate(ours), np.concatenate(theirs))]
    if len(ours) >= LEAST and len(theirs) >= LEAST:
        found.append(_welch(_medians(ours), _medians(theirs)))
    elif len(ours) > 1 or len(theirs) > 1:
        found += [_difference_interval(one, two) for one in ours for two in theirs]
    return _hull(found)


def _joined(rows: list[Array], interval: Any) -> Interval | None:
    np = _numpy()
    if not rows:
        return None
    found = [interval(np.concatenate(rows))]
    if len(rows) >= LEAST:
        found.append(_student(_medians(rows)))
    elif len(rows) > 1:
        found += [interval(row) for row in rows]
    return _hull(found)


def _hull(found: list[Interval | None]) -> Interval | None:
    known = [interval for interval in found if interval is not None]
    if not known:
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _around(interval: Interval, value: float) -> Interval:
    """What was computed by another way than the value must not exclude it."""
    return min(interval[0], value), max(interval[1], value)


def _median_interval(logs: Array) -> Interval | None:
    if logs.size < LEAST:
        return None
    if logs.size < _EXACT:
        return _student(logs)
    found = _stats().quantile_test(logs, q=0.0, p=0.5).confidence_interval(_LEVEL)
    return float(found.low), float(found.high)


def _difference_interval(one: Array, two: Array) -> Interval | None:
    if one.size < LEAST or two.size < LEAST:
        return None
    if one.size < _EXACT or two.size < _EXACT:
        return _welch(one, two)
    np = _numpy()

    def difference(a: Array, b: Array, axis: int = -1) -> Array:
        found: Array = np.median(a, axis=axis) - np.median(b, axis=axis)
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Of samples that don't vary.
        found = (
            _stats()
            .bootstrap(
                (one, two),
                difference,
                n_resamples=_RESAMPLES,
                confidence_level=_LEVEL,
                method="percentile",
                # The same runs give the same interval.
                random_state=np.random.default_rng(0),
            )
            .confidence_interval
        )
    return float(found.low), float(found.high)


def _student(logs: Array) -> Interval:
    np = _numpy()
    mean, error = float(np.mean(logs)), float(np.std(logs, ddof=1)) / float(np.sqrt(logs.size))
    reach = float(_stats().t.ppf((1 + _LEVEL) / 2, logs.size - 1)) * error
    return mean - reach, mean + reach


def _welch(one: Array, two: Array) -> Interval:
    np = _numpy()
    difference = float(np.mean(one) - np.mean(two))
    if not np.ptp(one) and not np.ptp(two):
        return difference, difference
    found = _stats().ttest_ind(one, two, equal_var=False).confidence_interval(_LEVEL)
    return float(found.low), float(found.high)


def _medians(rows: list[Array]) -> Array:
    np = _numpy()
    medians: Array = np.array([np.median(row) for row in rows])
    return medians


def _outliers(row: Array) -> int:
    np = _numpy()
    low, high = np.quantile(row, (0.25, 0.75))
    reach = _FENCE * (high - low)
    return int(np.count_nonzero((row < low - reach) | (row > high + reach)))


def _measured(row: Sequence[float]) -> Array:
    np = _numpy()
    runs = _positive(row)
    measured: Array = runs[np.isfinite(runs)]
    return measured


def _positive(row: Sequence[float]) -> Array:
    """NaN for what is no positive finite number."""
    np = _numpy()
    runs = np.asarray(row, dtype=float)
    positive: Array = np.where(np.isfinite(runs) & (runs > 0), runs, np.nan)
    return positive


def _exp(interval: Interval) -> Interval:
    np = _numpy()
    return float(np.exp(interval[0])), float(np.exp(interval[1]))


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise _missing("NumPy") from None
    return numpy


def _stats() -> Any:
    try:
        from scipy import stats
    except ImportError:
        raise _missing("SciPy") from None
    return stats


def _missing(name: str) -> ToolError:
    return ToolError(
        f"Confidence intervals need {name}, which is not installed.",
        hint='pip install "compilescope[bench]"',
    )
