"""What a report is made of. Every format draws the same blocks, so no format lags behind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Style = Literal["plain", "strong", "dim", "code", "good", "warn", "bad"]


@dataclass(frozen=True)
class Span:
    """A stretch of text and what it means."""

    text: str
    style: Style = "plain"


Words = tuple[Span, ...]
_CODE = re.compile(r"(`[^`\n]+`)")


def words(*parts: str | Span) -> Words:
    """Text and spans, side by side."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def prose(text: str) -> Words:
    """A sentence; what stands between backticks is code."""
    parts = _CODE.split(text)
    return tuple(
        Span(part, "code" if number % 2 else "plain") for number, part in enumerate(parts) if part
    )


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    text: str
    note: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A sentence or more."""

    words: Words
    depth: int = 0
    hanging: str = ""
    """A word that stands before the first line, the rest is set in under it."""


@dataclass(frozen=True)
class Facts:
    """Labels and values, one below the other."""

    rows: tuple[tuple[str, Words], ...]


@dataclass(frozen=True)
class Item:
    """A numbered entry: its place at the left, its name at the right."""

    number: str
    left: Words
    right: Words = ()


@dataclass(frozen=True)
class Excerpt:
    """A line of the user's source with the offending expression marked."""

    text: str
    column: int | None = None
    end_column: int | None = None


@dataclass(frozen=True)
class Listing:
    """Some lines of a file; in one of them an expression is marked."""

    first_line: int
    lines: tuple[str, ...]
    marked_line: int
    column: int | None = None
    end_column: int | None = None


Block = Heading | Paragraph | Facts | Item | Excerpt | Listing


@dataclass(frozen=True)
class Document:
    """A report."""

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
