"""Links from causes to their lines, in documents that show the source."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.report.blocks import Block, Item, Part, SourceFile


def with_lines(parts: Iterable[Part]) -> list[Part]:
    """The place that an item begins with leads to its line, where that is shown."""
    found = list(parts)
    anchors = {
        item: f"line-{block.number}-{line}"
        for part in found
        for block in part.blocks
        if isinstance(block, SourceFile)
        for item, line in block.links.items()
    }
    if not anchors:
        return found
    return [
        msgspec.structs.replace(part, blocks=tuple(_linked(each, anchors) for each in part.blocks))
        for part in found
    ]


def _linked(block: Block, anchors: dict[str, str]) -> Block:
    if not isinstance(block, Item) or block.anchor not in anchors or not block.left:
        return block
    place, *rest = block.left
    if place.target or place.url:
        return block
    place = msgspec.structs.replace(place, target=anchors[block.anchor])
    return msgspec.structs.replace(block, left=(place, *rest))
