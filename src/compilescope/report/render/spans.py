"""Spans of time and sizes as people read them."""

from __future__ import annotations


def duration(ns: float) -> str:
    """`1.24 s`, `35 ms`, `820 us`."""
    if ns >= 1e9:
        return f"{ns / 1e9:.2f} s"
    if ns >= 1e6:
        return f"{ns / 1e6:.0f} ms" if ns >= 1e7 else f"{ns / 1e6:.1f} ms"
    return f"{ns / 1e3:.0f} us"


def taken(ns: int) -> str:
    """The duration of a bar; a moment takes none."""
    return duration(ns) if ns else "·"
