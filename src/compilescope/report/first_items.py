"""How much of a long list is drawn: the first entries, and how to see the others."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TypeVar

from compilescope.report.blocks import Block, Paragraph, Span, note, words
from compilescope.report.section import Reading

T = TypeVar("T")


def first_items(
    reading: Reading, found: Sequence[T], draw: Callable[[int, T], Block], section: str
) -> list[Block]:
    """Each drawn with its number, from 1; of very many only the first ones."""
    most = reading.most_items
    blocks = [draw(number, each) for number, each in enumerate(found[:most], 1)]
    if len(found) > most:
        blocks.append(_more(reading, len(found) - most, section))
    return blocks


def _more(reading: Reading, left: int, section: str) -> Block:
    if not reading.page:
        return note(f"and {left:,} more; {reading.see_all}")
    command = ["compilescope", "show", "--all", "--section", section, reading.digest.run]
    return Paragraph(words(f"and {left:,} more: ", Span(shlex.join(command), "code")))
