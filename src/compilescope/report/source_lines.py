"""The lines of a source file as a report marks them."""

from __future__ import annotations

import msgspec


class MarkedLines(msgspec.Struct, frozen=True):
    """Lines of a file that follow one another."""

    first_line: int
    lines: tuple[str, ...]


class GutterCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a line lost of one kind."""

    column: str
    """The heading that it stands under."""
    text: str
    note: str = ""
    """The whole of it, in words."""
    target: str = ""
    """The anchor of the item that explains it."""
    heat: float = 0.0
    """From 0 to 1: how much of the most that any line lost of this kind."""


class MarkedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line that lost something, or that an item speaks of."""

    line: int
    cells: tuple[GutterCell, ...] = ()
    column: int | None = None
    end_column: int | None = None
    """On `end_line`."""
    end_line: int | None = None


class Stripe(msgspec.Struct, frozen=True):
    """Lines that ran in the same way: `graph`, `eager` or `both`."""

    first: int
    last: int
    kind: str
