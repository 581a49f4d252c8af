"""Links from causes and tables to their lines, in documents that show the source."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.report.blocks import Block, Item, Part, SourceFile, Table, Words

_LINE = "line "
"""What the target of a line begins with, as long as nobody knows where it is shown."""


def line_target(file: str, line: int) -> str:
    """Of a span in a table: it leads to the line, where that is shown, else nowhere."""
    return f"{_LINE}{file}:{line}"


def with_lines(parts: Iterable[Part]) -> list[Part]:
    """The place that an item begins with leads to its line, where that is shown; so do spans of
    tables whose target is a line."""
    found = list(parts)
    anchors = {
        item: f"line-{block.number}-{line}"
        for part in found
        for block in part.blocks
        if isinstance(block, SourceFile)
        for item, line in block.links.items()
    }
    return [
        msgspec.structs.replace(part, blocks=tuple(_linked(each, anchors) for each in part.blocks))
        for part in found
    ]


def _linked(block: Block, anchors: dict[str, str]) -> Block:
    if isinstance(block, Table):
        return _linked_table(block, anchors)
    if not isinstance(block, Item) or block.anchor not in anchors or not block.left:
        return block
    place, *rest = block.left
    if place.target or place.url:
        return block
    place = msgspec.structs.replace(place, target=anchors[block.anchor])
    return msgspec.structs.replace(block, left=(place, *rest))


def _linked_table(block: Table, anchors: dict[str, str]) -> Table:
    if not any(
        span.target.startswith(_LINE) for row in block.rows for cell in row for span in cell
    ):
        return block
    rows = tuple(tuple(_linked_words(cell, anchors) for cell in row) for row in block.rows)
    return msgspec.structs.replace(block, rows=rows)


def _linked_words(cell: Words, anchors: dict[str, str]) -> Words:
    return tuple(
        msgspec.structs.replace(span, target=anchors.get(span.target, ""))
        if span.target.startswith(_LINE)
        else span
        for span in cell
    )
