"""Which addresses a report may link to: web pages, files, and the dashboard's own pages."""

from __future__ import annotations

from compilescope.patterns import late
from compilescope.texts import visible

_OUTSIDE = late(r"(?:https?://|file:///)[^\s<>\"\\`]*")
_OWN = late(r"/(?![/\\])[!-\[\]-~]*")
"""Browsers read `//` and `/\\` as another host, and pass over tabs and line breaks between."""


def is_outside(url: str) -> bool:
    """Anyone's: it can be followed from anywhere, and nothing hides in it."""
    return _OUTSIDE.fullmatch(url) is not None and visible(url) == url


def is_address(url: str) -> bool:
    """What a page may link to: anyone's, or one of the server that shows the page."""
    return is_outside(url) or _OWN.fullmatch(url) is not None
