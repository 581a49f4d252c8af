"""The roof of a machine and what is under it: a drawing for a page, a line of words elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from compilescope.report.amounts import shown_number, shown_rate
from compilescope.report.blocks import Roofline, RooflineDot

_WIDTH, _HEIGHT = 1000, 500
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
        "width": _WIDTH,
        "height": _HEIGHT,
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
    return " ".join(f"{_WIDTH * x:.1f},{_HEIGHT * y:.1f}" for x, y in places)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
