"""Text that others wrote, as HTML that can do nothing but be read: all passes through here."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from compilescope.texts import visible


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
