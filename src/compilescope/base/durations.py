"""Durations as people type them: 90, 90s, 2m, 1h30m."""

from __future__ import annotations

import re

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def read_duration(text: str) -> float | None:
    """Return the seconds of `90`, `90s`, `2m`, `1.5h` or `1h30m`; None if it is no duration."""
    pieces = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    written = "".join(number + unit for number, unit in pieces)
    right = written == re.sub(r"\s", "", text.lower()) and all(u in _UNITS for _, u in pieces)
    seconds = sum(float(number) * _UNITS.get(unit, 0.0) for number, unit in pieces)
    return seconds if right and seconds else None


def write_duration(seconds: float) -> str:
    """Return the shortest text that `read_duration` reads as `seconds`."""
    for unit in ("h", "m"):
        if seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:g}{unit}"
    return f"{seconds:g}s"
