"""A language model's words in a report: always under its name."""

from __future__ import annotations

import msgspec

from compilescope.report.blocks import Document, Paragraph, Part, Quote, Span, words


def model_quote(model: str, text: str, *, redacted: bool = False) -> Quote:
    """Nobody may take them for ours: who says it, and that nothing was checked."""
    names = ", asked with redacted names" if redacted else ""
    return Quote(f"A language model ({model}{names}) says, unverified", text)


def with_problem(document: Document, problem: str | None) -> Document:
    """One more line at its end: why words of the model are missing."""
    if problem is None:
        return document
    line = Paragraph(words(Span(f"No answer from the model: {problem}", "warn")))
    return msgspec.structs.replace(document, parts=(*document.parts, Part("llm", "", (line,))))
