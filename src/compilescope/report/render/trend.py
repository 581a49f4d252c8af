"""Points over time: a line with a band for a page, a row of strokes for a terminal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from compilescope.report.blocks import Trend, TrendPoint
from compilescope.report.render.addresses import is_address

_LEVELS = "▁▂▃▄▅▆▇█"
_MOST_STROKES = 40
"""In a terminal. Chosen: half of its width."""
_MOST_POINTS = 200
"""On a page. Chosen: each that is a link is a stop of the Tab key."""
_WIDTH, _HEIGHT = 1000, 100
"""Of the drawing's own grid, which a page stretches to the room that it has."""
_AIR = 0.08
"""Above the highest and below the lowest."""
_BEYOND = 1e300
"""Sums and differences of two such numbers are still finite floats."""


def trend_values(block: Trend) -> dict[str, Any]:
    points = _shown(block)
    low, high = _scale(points)

    def y(value: float) -> float:
        return round(_HEIGHT * (1 - (value - low) / (high - low)), 2)

    xs = _places(len(points))
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "line": _path(zip(xs, (y(point.value) for point in points), strict=True)),
        "band": _band(points, xs, y),
        "dots": [
            (point, f"{100 * x / _WIDTH:.2f}", f"{100 * y(point.value) / _HEIGHT:.2f}")
            for x, point in zip(xs, points, strict=True)
        ],
        "is_address": is_address,
        "summary": trend_summary(block),
        "first": points[0].label if points else "",
        "last": points[-1].label if len(points) > 1 else "",
    }


def trend_strokes(block: Trend) -> str:
    """The sparkline; many points share a stroke, which stands for their mean."""
    values = [point.value for point in _drawable(block)]
    if not values:
        return ""
    strokes = min(len(values), _MOST_STROKES)
    ends = [number * len(values) // strokes for number in range(strokes + 1)]
    means = [_mean(values[a:b]) for a, b in itertools.pairwise(ends)]
    low, high = min(means), max(means)
    top = len(_LEVELS) - 1
    return "".join(
        _LEVELS[round(top * (mean - low) / (high - low)) if high > low else 0] for mean in means
    )


def trend_summary(block: Trend) -> str:
    """What the line says, in words: for who cannot see it."""
    points = _drawable(block)
    if not points:
        return "No values yet"
    if len(points) == 1:
        return points[0].text
    lowest = min(points, key=lambda point: point.value)
    highest = max(points, key=lambda point: point.value)
    left_out = len(points) - len(_shown(block))
    only = f", drawn: the last {len(points) - left_out:,} of {len(points):,}" if left_out else ""
    return (
        f"first {points[0].text}, last {points[-1].text}, "
        f"lowest {lowest.text}, highest {highest.text}{only}"
    )


def _drawable(block: Trend) -> list[TrendPoint]:
    return [point for point in block.points if _has_place(point.value)]


def _has_place(value: float) -> bool:
    """A record may come from anywhere: on a line there are numbers, whose differences are too."""
    return math.isfinite(value) and abs(value) < _BEYOND


def _shown(block: Trend) -> list[TrendPoint]:
    return _drawable(block)[-_MOST_POINTS:]


def _interval(point: TrendPoint) -> tuple[float, float] | None:
    if point.low is None or point.high is None:
        return None
    known = _has_place(point.low) and _has_place(point.high)
    return (point.low, point.high) if known else None


def _scale(points: Sequence[TrendPoint]) -> tuple[float, float]:
    """From 0 where that does not flatten the line, else around the values."""
    values = [point.value for point in points]
    for interval in map(_interval, points):
        values += interval or ()
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low >= 0 and low <= high / 2:
        low = 0.0
    span = high - low
    if span <= 0:
        return low - (abs(low) or 1.0), low + (abs(low) or 1.0)
    return low - _AIR * span, high + _AIR * span


def _places(number: int) -> list[float]:
    if number == 1:
        return [_WIDTH / 2]
    return [round(_WIDTH * at / (number - 1), 2) for at in range(number)]


def _band(points: Sequence[TrendPoint], xs: Sequence[float], y: Any) -> str:
    """Around the points whose interval is known; fewer than two have no band."""
    known = [
        (x, interval)
        for x, interval in zip(xs, map(_interval, points), strict=True)
        if interval is not None
    ]
    if len(known) < 2:
        return ""
    upper = [(x, y(high)) for x, (_, high) in known]
    lower = [(x, y(low)) for x, (low, _) in reversed(known)]
    return _path([*upper, *lower])


def _path(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _mean(values: Sequence[float]) -> float:
    return sum(value / len(values) for value in values)
