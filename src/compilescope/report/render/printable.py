"""Text that a program wrote, made safe to hand on: nothing in it steers a reader.

Control characters, lone surrogates and marks that turn the direction of text become U+FFFD. What is
left can be encoded, and stands in XML 1.0 as it is.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with line breaks and tabs kept."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text
    )
