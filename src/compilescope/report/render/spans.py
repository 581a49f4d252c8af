"""Durations, ages, moments and ticks of a time axis as people read them."""

from __future__ import annotations

import math
import time

_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"))
_NARROW_PERCENT = 3
"""A bar that is narrower has no words in it. Chosen: they would not fit on a common screen."""


def duration(ns: float) -> str:
    """`1.24 s`, `35 ms`, `820 us`."""
    if ns >= 1e9:
        return f"{ns / 1e9:.2f} s"
    if ns >= 1e6:
        return f"{ns / 1e6:.0f} ms" if ns >= 1e7 else f"{ns / 1e6:.1f} ms"
    return f"{ns / 1e3:.0f} us"


def ago(seconds: float) -> str:
    """`3 min ago`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def moment(seconds: float) -> str:
    """`2026-11-16 07:21`, where the server is; empty where it is not known."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds > 0 else ""


def taken(ns: int) -> str:
    """The duration of a bar; a moment takes none."""
    return duration(ns) if ns else "·"


def label_class(percent: float) -> str:
    """Of a bar that is too narrow for its label on a page of usual width; a script knows better."""
    return " bare" if percent < _NARROW_PERCENT else ""


def round_ticks(whole_ns: int, most: int = 8) -> list[tuple[float, str]]:
    """Round moments from 0 on, as many as there is room for, each with its label."""
    step = _round_step(whole_ns / most)
    unit, name = next(((u, n) for u, n in _UNITS if whole_ns >= u), _UNITS[-1])
    digits = max(0, -math.floor(math.log10(step / unit) + 1e-9))
    number = math.floor(whole_ns / step + 1e-9)
    labels = (f"{n * step / unit:.{digits}f} {name}" if n else "0" for n in range(number + 1))
    return [(n * step, label) for n, label in enumerate(labels)]


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = float(10 ** math.floor(math.log10(least)))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least * (1 - 1e-9))
