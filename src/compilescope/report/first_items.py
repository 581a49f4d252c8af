"""How much of a long list is drawn: the first entries, and how to see the others."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from compilescope.report.blocks import Block, Fold, Paragraph, Span, Table, note, words
from compilescope.report.section import MOST_IN_FULL, Reading

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


def bounded(reading: Reading, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Of a long run, whose sections may all be long: what a list or a table has beyond what anyone
    reads is counted."""
    most = MOST_IN_FULL
    found: list[Block] = []
    for block in blocks[:most]:
        if isinstance(block, Table) and len(block.rows) > most:
            left = len(block.rows) - most
            block = msgspec.structs.replace(block, rows=block.rows[:most])
            found += [block, note(f"and {left:,} more; {reading.see_all}")]
        elif isinstance(block, Fold):
            found.append(msgspec.structs.replace(block, blocks=bounded(reading, block.blocks)))
        else:
            found.append(block)
    if len(blocks) > most:
        found.append(note(f"and {len(blocks) - most:,} more; {reading.see_all}"))
    return tuple(found)


def _more(reading: Reading, left: int, section: str) -> Block:
    if not reading.page:
        return note(f"and {left:,} more; {reading.see_all}")
    command = ["compilescope", "show", "--all", "--section", section, reading.digest.run]
    return Paragraph(words(f"and {left:,} more: ", Span(shlex.join(command), "code")))
