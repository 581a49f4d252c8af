"""Text that others wrote, as HTML that can do nothing but be read: all passes through here."""

from __future__ import annotations

from html import escape
from typing import Any

from markupsafe import Markup

# Control characters that HTML forbids even as references; a browser would show nothing or worse.
_FORBIDDEN = (*range(9), 11, *range(14, 32), *range(127, 160), 0xFFFE, 0xFFFF)
# Marks that turn the direction of the text around them, and so what a reader believes to read.
_TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ODD = {c: "\N{REPLACEMENT CHARACTER}" for c in _FORBIDDEN}
_ODD |= {c: f"\u27e8U+{c:04X}\u27e9" for c in _TURNING}


def readable(text: str) -> str:
    """Without what would steer a reader's eyes or browser; not escaped yet."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate(_ODD).encode("utf-8", "replace").decode()


def clean(text: str) -> Markup:
    """Readable and escaped."""
    return Markup(escape(readable(text)))


def finalize(value: Any) -> Any:
    """What a template prints passes through here; what is marked as HTML already did."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return "" if value is None else value
    return readable(value)
