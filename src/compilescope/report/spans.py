"""Styled text: spans of words, each with what it means (code, good, bad), never with a colour."""

from __future__ import annotations

import msgspec

from compilescope.patterns import late
from compilescope.report.record import Style


class Span(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stretch of text and what it means."""

    text: str
    style: Style = "plain"
    target: str = ""
    """The anchor of an item elsewhere in the document that this text speaks of."""
    url: str = ""
    """A page outside the document that this text leads to: http, https or file. One that begins
    with a single `/` is a page of the dashboard: a link on its pages, plain text elsewhere."""


Words = tuple[Span, ...]
_CODE = late(r"(`[^`\n]+`)")


def words(*parts: str | Span) -> Words:
    """Text and spans, side by side."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts)


def prose(text: str) -> Words:
    """A sentence; what stands between backticks is code."""
    parts = _CODE.split(text)
    return tuple(
        Span(part, "code" if number % 2 else "plain") for number, part in enumerate(parts) if part
    )


def plain(parts: Words) -> str:
    """The text alone."""
    return "".join(part.text for part in parts)
