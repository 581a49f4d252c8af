"""Text that others wrote, as HTML that can do nothing but be read: all passes through here.

Likewise their addresses: a report links to web pages, files, and the dashboard's own pages.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from compilescope.base.patterns import late
from compilescope.base.texts import visible


def escape(text: str) -> str:
    """As `html.escape`, whose module brings the names of all characters."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def clean(text: str) -> Markup:
    """Visible and escaped."""
    return Markup(escape(visible(text)))


def finalize(value: Any) -> Any:
    """What a template prints passes through here; what is marked as HTML already did."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return visible(value)


_OUTSIDE = late(r"(?:https?://|file:///)[^\s<>\"\\`]*")
_OWN = late(r"/(?![/\\])[!-\[\]-~]*")
"""Browsers read `//` and `/\\` as another host, and pass over tabs and line breaks between."""


def is_outside(url: str) -> bool:
    """Anyone's: it can be followed from anywhere, and nothing hides in it."""
    return _OUTSIDE.fullmatch(url) is not None and visible(url) == url


def is_address(url: str) -> bool:
    """What a page may link to: anyone's, or one of the server that shows the page."""
    return is_outside(url) or _OWN.fullmatch(url) is not None
