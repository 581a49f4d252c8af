"""A document with so many letters at the most: what it quotes may be as long as its author likes.

The longest texts lose their end, all to the same length, and say how much it was. Code, diffs and
drawings stay as they are: their renderers cut lines to the width that there is.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from compilescope.report.blocks import (
    Diff,
    Document,
    Excerpt,
    Heatmap,
    Listing,
    Panes,
    SourceFile,
)

T = TypeVar("T")
SHORT_TEXT = 2_000
"""Letters that a text may always have. Chosen: a screen of 80 columns, more than we ever say
ourselves."""
_LINE = 80
"""Letters, on the usual terminal."""
TAB = 8
"""Columns, on every terminal."""
_CUT_ELSEWHERE = (Diff, Excerpt, Heatmap, Listing, Panes, SourceFile)


def fit_letters(document: Document, most: int) -> Document:
    """The same object where all texts have room, which is nearly always. Its findings stay whole:
    no drawing reads them."""
    drawn = msgspec.structs.replace(document, findings=(), accepted=None)
    kept = fit_texts(drawn, most)
    if kept is drawn:
        return document
    return msgspec.structs.replace(kept, findings=document.findings, accepted=document.accepted)


def fit_texts(value: T, most: int) -> T:
    """The same for blocks that belong to no document."""
    lengths = sorted(map(_room, _long_texts(value)), reverse=True)
    if sum(lengths) <= most:
        return value
    return _cut(value, _length_for(lengths, most))  # type: ignore[no-any-return]


def _room(text: str) -> int:
    """A line break takes the rest of its line, a tab the way to its stop."""
    return len(text) + _LINE * text.count("\n") + TAB * text.count("\t")


def _length_for(lengths: list[int], most: int) -> int:
    """That of all texts that are longer, so that together they have at most so many letters."""
    room = most
    for done, length in enumerate(reversed(lengths)):
        left = len(lengths) - done
        if length * left > room:
            return max(room // left, SHORT_TEXT)
        room -= length
    return lengths[0]


def _long_texts(value: Any) -> list[str]:
    """In a loop, without a call for each: a document has hundreds of thousands of values."""
    found = []
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if len(one) > SHORT_TEXT:
                found.append(one)
        elif isinstance(one, tuple):
            left += one
        elif isinstance(one, msgspec.Struct) and not isinstance(one, _CUT_ELSEWHERE):
            left += [getattr(one, name) for name in one.__struct_fields__]
    return found


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return _first_letters(value, longest)
    if isinstance(value, tuple):
        parts = tuple(_cut(each, longest) for each in value)
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else parts
    if isinstance(value, msgspec.Struct) and not isinstance(value, _CUT_ELSEWHERE):
        changed = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = _cut(old, longest)
            if new is not old:
                # Half an address leads nowhere.
                changed[name] = "" if name in ("url", "target", "anchor") else new
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _first_letters(text: str, longest: int) -> str:
    if len(text) <= SHORT_TEXT or _room(text) <= longest:
        return text
    kept = text[: longest * len(text) // _room(text)]
    lines = kept.split("\n", longest // _LINE)
    if len(lines) > longest // _LINE:
        kept = "\n".join(lines[:-1])
    return f"{kept}… ({len(text) - len(kept):,} more letters; JSON has them all)"
