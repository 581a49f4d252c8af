"""Makes hidden characters in all texts of a block visible, for terminals and markdown.

A whole block at once, so that no renderer can forget one of its fields.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from compilescope.base.texts import visible
from compilescope.report.blocks import Document, Excerpt, Listing, MarkedLine, SourceFile

T = TypeVar("T")


def cleaned_document(document: Document) -> Document:
    """But for its findings, which no drawing reads."""
    kept = msgspec.structs.replace(document, findings=(), accepted=None)
    return msgspec.structs.replace(
        cleaned(kept), findings=document.findings, accepted=document.accepted
    )


def cleaned(value: T) -> T:
    """The same object where nothing is hidden in it, which is nearly always."""
    clean: Any = _cleaned(value)
    if clean is not value and isinstance(value, Excerpt | Listing | SourceFile):
        clean = _aligned(value, clean)
    return clean  # type: ignore[no-any-return]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple):
        parts = tuple(map(cleaned, value))
        same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if same else parts
    if isinstance(value, dict):
        return {cleaned(key): cleaned(each) for key, each in value.items()}
    if isinstance(value, msgspec.Struct):
        changed = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = cleaned(old)
            if new is not old:
                changed[name] = new
        return msgspec.structs.replace(value, **changed) if changed else value
    return value


def _aligned(block: Excerpt | Listing | SourceFile, clean: Any) -> Any:
    """What was spelled out is longer: the marks move with the text that they are under."""
    if isinstance(block, Excerpt):
        columns = _moved(block.column, block.text), _moved(block.end_column, block.text)
        return msgspec.structs.replace(clean, column=columns[0], end_column=columns[1])
    if isinstance(block, Listing):
        lines = dict(enumerate(block.lines, block.first_line))
        whole = MarkedLine(block.marked_line, (), block.column, block.end_column, block.end_line)
        marked = _marked(whole, whole, lines)
        return msgspec.structs.replace(clean, column=marked.column, end_column=marked.end_column)
    lines = {
        number: line
        for part in block.stretches
        for number, line in enumerate(part.lines, part.first_line)
    }
    pairs = zip(block.marked, clean.marked, strict=True)
    return msgspec.structs.replace(clean, marked=tuple(_marked(o, n, lines) for o, n in pairs))


def _marked(old: MarkedLine, clean: MarkedLine, lines: dict[int, str]) -> MarkedLine:
    last = old.end_line or old.line
    return msgspec.structs.replace(
        clean,
        column=_moved(old.column, lines.get(old.line, "")),
        end_column=_moved(old.end_column, lines.get(last, "")),
    )


def _moved(column: int | None, text: str) -> int | None:
    if column is None or column < 0:
        return column
    return column + len(visible(text[:column])) - len(text[:column])
