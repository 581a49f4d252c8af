"""Charts with axes: points over time, and kernels under the roof of a machine. Each as a drawing
for a page and as text for a terminal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from compilescope.report.blocks import (
    Curve,
    Curves,
    Roofline,
    RooflineDot,
    Trend,
    TrendPoint,
)
from compilescope.report.places import shown_number, shown_rate
from compilescope.report.render.safe_html import is_address

_ROOF_WIDTH, _ROOF_HEIGHT = 1000, 500
"""Of the drawing's own grid, which a page stretches to the room that it has."""
_NUMBERED = 5
"""Dots with a line below the drawing. Chosen: what is beyond is in the table of kernels."""
_LEAST_REM, _NUMBER_REM, _MOST_REM = 0.55, 1.25, 2.6
"""Of a dot: the smallest that can be hit, one that a number fits into, one of all of the time."""
_LEFT_OF_RIDGE = 1.2
"""Decades. Chosen: the slope is to be seen, and its label has room."""
_MOST_TICKS = 7
"""Of an axis. Chosen: on 400 pixels more would touch."""
_APART = 0.07
"""Of the height: labels nearer than that stand in one line."""
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


# Several lines over each other, on the same two scales.

_SHADES = 8
"""Colours and dashes that the style sheet has. Chosen: more lines nobody tells apart."""


class _PlacedPoint(NamedTuple):
    at: float
    point: TrendPoint


class _DrawnCurve(NamedTuple):
    """A line, its end, and what stands for it below the drawing."""

    shade: int
    curve: Curve
    line: str
    dot: bool
    x: str
    y: str
    summary: str
    is_linked: bool


def curves_values(block: Curves) -> dict[str, Any]:
    placed = [_placed(curve) for curve in block.curves]
    every = [each for points in placed for each in points]
    low, high = _ends([each.point.value for each in every])
    end = max((each.at for each in every), default=0.0) or 1.0

    def place(each: _PlacedPoint) -> tuple[float, float]:
        y = _HEIGHT * (1 - (each.point.value - low) / (high - low))
        return round(_WIDTH * each.at / end, 2), round(y, 2)

    lines = []
    for curve, points in zip(block.curves, placed, strict=True):
        places = [place(each) for each in points]
        x, y = places[-1] if places else (0.0, 0.0)
        lines.append(
            _DrawnCurve(
                shade=curve.number % _SHADES,
                curve=curve,
                line=_path(places),
                dot=bool(places),
                x=f"{100 * x / _WIDTH:.2f}",
                y=f"{100 * y / _HEIGHT:.2f}",
                summary=curve_summary(curve),
                is_linked=is_address(curve.url),
            )
        )
    lowest = min(every, key=lambda each: each.point.value, default=None)
    highest = max(every, key=lambda each: each.point.value, default=None)
    latest = max(every, key=lambda each: each.at, default=None)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "lines": lines,
        "lowest": "0" if low == 0 else lowest.point.text if lowest else "",
        "highest": highest.point.text if highest else "",
        "latest": latest.point.label if latest else "",
        "summary": "; ".join(f"{each.label}: {curve_summary(each)}" for each in block.curves),
    }


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest, which have their labels; from 0 as other lines."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if 0 <= low <= high / 2 or low == high:
        low = min(low, 0.0)
    return (low, high) if high > low else (low, low + 1.0)


def curve_strokes(curve: Curve) -> str:
    return trend_strokes(_as_trend(curve))


def curve_summary(curve: Curve) -> str:
    return trend_summary(_as_trend(curve))


def _as_trend(curve: Curve) -> Trend:
    return Trend("", tuple(each.point for each in _placed(curve)))


def _placed(curve: Curve) -> list[_PlacedPoint]:
    """The points that have a place on both scales."""
    pairs = map(_PlacedPoint, curve.at, curve.points)
    return [
        each
        for each in pairs
        if _has_place(each.at) and each.at >= 0 and _has_place(each.point.value)
    ][-_MOST_POINTS:]


# The roof of a machine and what is under it: a drawing for a page, a line of words elsewhere.


class _Axis(NamedTuple):
    """From one power of ten to another."""

    low: int
    high: int

    def share(self, value: float) -> float:
        return (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        step = -(-(self.high - self.low) // _MOST_TICKS)
        return [10.0**power for power in range(self.low, self.high + 1, step)]


def roofline_values(block: Roofline) -> dict[str, Any]:
    x, y = _axes(block)
    return {
        "width": _ROOF_WIDTH,
        "height": _ROOF_HEIGHT,
        "grid": [
            *(_line(x.share(tick), 0, x.share(tick), 1) for tick in x.ticks()),
            *(_line(0, y.share(tick), 1, y.share(tick)) for tick in y.ticks()),
        ],
        "roofs": list(_roofs(block, x, y)),
        "slope": _slope_label(block, x, y),
        "ceilings": list(_ceiling_labels(block.ceilings, y)),
        "x_ticks": [(_percent(x.share(tick)), _tick(tick)) for tick in x.ticks()],
        "y_ticks": [(_percent(1 - y.share(tick)), _tick(tick)) for tick in y.ticks()],
        "dots": [
            (
                str(number) if number <= _NUMBERED else "",
                dot,
                _percent(x.share(dot.flops_per_byte)),
                _percent(1 - y.share(dot.flops_per_second)),
                f"{_size(dot, number):.2f}",
            )
            for number, dot in enumerate(block.dots, 1)
        ],
        "named": block.dots[:_NUMBERED],
        "summary": roofline_summary(block),
    }


def roofline_summary(block: Roofline) -> str:
    """What is drawn, in words: for who cannot see it."""
    roof = [shown_rate(block.bytes_per_second, "B/s")]
    roof += [f"{name} {shown_rate(rate, 'FLOP/s')}" for name, rate in block.ceilings]
    first = block.dots[0]
    return f"the roof is {', '.join(roof)}; most time takes {first.label}: {first.text}"


def _axes(block: Roofline) -> tuple[_Axis, _Axis]:
    """Wide enough for all dots and for where the slope ends."""
    levels = [rate for _, rate in block.ceilings]
    ridges = [math.log10(rate / block.bytes_per_second) for rate in levels]
    across = [math.log10(dot.flops_per_byte) for dot in block.dots]
    left = min([*across, *(ridge - _LEFT_OF_RIDGE for ridge in ridges)])
    up = [math.log10(rate) for rate in (*levels, *(dot.flops_per_second for dot in block.dots))]
    return _around(left, max([*across, *ridges])), _around(min(up), max(up))


def _around(low: float, high: float) -> _Axis:
    """An end that a value nearly touches is a decade further."""
    first, last = math.floor(low - 0.1), math.ceil(high + 0.1)
    return _Axis(first, max(last, first + 2))


def _roofs(block: Roofline, x: _Axis, y: _Axis) -> Iterable[str]:
    """The slope up to the highest ceiling, and each ceiling from the slope on."""
    start, end = _slope(block, x, y)
    yield _line(x.share(start), _at(block, start, y), x.share(end), _at(block, end, y))
    for _, rate in block.ceilings:
        ridge = rate / block.bytes_per_second
        yield _line(x.share(ridge), y.share(rate), 1, y.share(rate))


def _slope(block: Roofline, x: _Axis, y: _Axis) -> tuple[float, float]:
    """Operations a byte at its ends, within the drawing."""
    highest = max(rate for _, rate in block.ceilings)
    start = max(10.0**x.low, 10.0**y.low / block.bytes_per_second)
    return start, min(10.0**x.high, highest / block.bytes_per_second)


def _slope_label(block: Roofline, x: _Axis, y: _Axis) -> tuple[str, str, str]:
    """Its text, the place of its right end, and of its bottom: the left of the slope is free."""
    start, end = _slope(block, x, y)
    middle = 10 ** ((math.log10(start) + 2 * math.log10(end)) / 3)
    text = shown_rate(block.bytes_per_second, "B/s")
    return text, _percent(1 - x.share(middle)), _percent(_at(block, middle, y))


def _at(block: Roofline, flops_per_byte: float, y: _Axis) -> float:
    return y.share(flops_per_byte * block.bytes_per_second)


def _ceiling_labels(ceilings: Sequence[tuple[str, float]], y: _Axis) -> Iterable[tuple[str, str]]:
    groups: list[list[tuple[str, float]]] = []
    for name, rate in sorted(ceilings, key=lambda ceiling: -ceiling[1]):
        if groups and y.share(groups[-1][0][1]) - y.share(rate) < _APART:
            groups[-1].append((name, rate))
        else:
            groups.append([(name, rate)])
    for group in groups:
        text = ", ".join(f"{name} {shown_rate(rate, 'FLOP/s')}" for name, rate in group)
        yield text, _percent(y.share(group[0][1]))


def _size(dot: RooflineDot, number: int) -> float:
    """The area is the share, but for those that could not be seen."""
    least = _NUMBER_REM if number <= _NUMBERED else _LEAST_REM
    return max(_MOST_REM * math.sqrt(min(max(dot.share, 0.0), 1.0)), least)


def _tick(value: float) -> str:
    return shown_number(value) if value >= 1 else f"{value:g}"


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    places = ((x1, 1 - y1), (x2, 1 - y2))
    return " ".join(f"{_ROOF_WIDTH * x:.1f},{_ROOF_HEIGHT * y:.1f}" for x, y in places)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
