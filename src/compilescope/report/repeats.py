"""Removes repetition: a sentence that a document has said already is not said again.

It is left out, or points to where it stands.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.report.blocks import (
    Block,
    Document,
    Fold,
    Item,
    Paragraph,
    Part,
    Span,
    Words,
    plain,
)

_LEAST_WORDS = 5
"""A shorter sentence may come again: a label, an amount, the name of a change. Chosen."""
_END = late(r"(?<=[.!?])\s+(?=[^\sa-z]|$)")
_NOUNS = {"breaks": "break", "recompiles": "recompile", "failures": "failure", "causes": "cause"}
_SAME = "same as "
_FREE = ("Cost:", "-")
"""Amounts and values: equal ones are no repeats."""


class _SaidSentences(msgspec.Struct):
    """What the document has said so far, and where."""

    where: Span = msgspec.field(default_factory=lambda: Span("above"))
    sentences: dict[str, Span] = msgspec.field(default_factory=dict)
    pointed: set[str] = msgspec.field(default_factory=set)
    """To where the item that is being read points already."""

    def enter(self, where: Span) -> None:
        self.where, self.pointed = where, set()

    def cleaned(self, block: Block) -> Block | None:
        if isinstance(block, Item | Fold):
            return msgspec.structs.replace(block, blocks=tuple(self.all(block.blocks)))
        if isinstance(block, Paragraph) and block.hanging not in _FREE:
            return self._paragraph(block)
        return block

    def all(self, blocks: Iterable[Block]) -> Iterable[Block]:
        for block in blocks:
            kept = self.cleaned(block)
            if kept is not None:
                yield kept

    def _paragraph(self, block: Paragraph) -> Paragraph | None:
        kept: list[Words] = []
        first: Span | None = None
        if plain(block.words).startswith(_SAME):
            self.pointed.add(plain(block.words).removeprefix(_SAME))
            return block
        for sentence in _sentences(block.words):
            key = " ".join(plain(sentence).split()).rstrip(".")
            before = self.sentences.get(key)
            if before is None or len(key.split()) < _LEAST_WORDS:
                self.sentences.setdefault(key, self.where)
                kept.append(sentence)
            else:
                first = first or before
        if first is None:
            return block
        if kept:
            return msgspec.structs.replace(block, words=_joined(kept))
        if not block.hanging or first is self.where or first.text in self.pointed:
            return None
        self.pointed.add(first.text)
        return msgspec.structs.replace(block, words=(Span(_SAME), first))


def without_repeats(document: Document, *, by_entry: bool = False) -> Document:
    """Of a page, a reader may open any entry first: each is whole in itself."""
    said = _SaidSentences()
    parts = (_part(part, None if by_entry else said) for part in document.parts)
    return msgspec.structs.replace(document, parts=tuple(parts))


def _part(part: Part, before: _SaidSentences | None) -> Part:
    kept: list[Block] = []
    for block in part.blocks:
        said = _SaidSentences() if before is None else before
        said.enter(_place(block, part))
        kept += said.all([block])
    return msgspec.structs.replace(part, blocks=tuple(kept))


def _place(block: Block, part: Part) -> Span:
    """What to call a block where another speaks of it."""
    if not isinstance(block, Item):
        return Span("above")
    noun = _NOUNS.get(part.id)
    name = f"{noun} {block.number}" if noun else plain(block.left)
    return Span(name, target=block.anchor)


def _sentences(words: Words) -> list[Words]:
    """Split after full stops outside code; each sentence keeps its spans."""
    found: list[list[Span]] = [[]]
    for span in words:
        pieces = [span.text] if span.style == "code" else _END.split(span.text)
        for number, piece in enumerate(pieces):
            if number:
                found.append([])
            if piece:
                found[-1].append(msgspec.structs.replace(span, text=piece))
    return [tuple(sentence) for sentence in found if sentence]


def _joined(sentences: list[Words]) -> Words:
    joined: list[Span] = []
    for sentence in sentences:
        joined += [Span(" ")] if joined else []
        joined += sentence
    return tuple(joined)
