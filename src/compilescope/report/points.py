"""Points of drawings."""

from __future__ import annotations

import msgspec


class TrendPoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A value at a moment."""

    label: str
    """The moment, for people."""
    value: float
    text: str
    """The value, for people."""
    low: float | None = None
    high: float | None = None
    url: str = ""
    """The page that it comes from, as in a `Span`."""


class RooflineDot(msgspec.Struct, frozen=True, omit_defaults=True):
    """What computes something, by how much of it a byte and a second."""

    label: str
    text: str
    """Its numbers, for people."""
    flops_per_byte: float
    flops_per_second: float
    share: float
    """Of the time."""
