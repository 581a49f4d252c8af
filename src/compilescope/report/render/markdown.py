"""Blocks as GitHub-flavoured markdown: for issues, pull requests and job summaries."""

from __future__ import annotations

import re

from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Facts,
    Heading,
    Item,
    Listing,
    Paragraph,
    Span,
    Words,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def to_markdown(document: Document) -> str:
    parts = [f"# {_escape(document.title)}"]
    if document.subtitle:
        parts.append(_code(document.subtitle))
    parts += [_block(block) for block in document.blocks]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        note = f" — {_escape(block.note)}" if block.note else ""
        return f"## {_escape(block.text)}{note}"
    if isinstance(block, Paragraph):
        hanging = f"**{_escape(block.hanging)}** " if block.hanging not in ("", "-") else ""
        return ("- " if block.hanging == "-" else hanging) + _words(block.words)
    if isinstance(block, Facts):
        rows = [f"| {_escape(label)} | {_words(value)} |" for label, value in block.rows]
        return "\n".join(["| | |", "|---|---|", *rows])
    if isinstance(block, Item):
        right = f" · {_words(block.right)}" if block.right else ""
        return f"### {block.number}. {_words(block.left)}{right}"
    if isinstance(block, Listing):
        return _listing(block)
    return _excerpt(block)


def _listing(block: Listing) -> str:
    text = "\n".join(block.lines)
    lines: list[str] = []
    for number, line in enumerate(block.lines, block.first_line):
        lines.append(line)
        if number == block.marked_line and block.column is not None:
            stop = block.end_column if block.end_column is not None else len(line)
            lines.append(" " * block.column + "^" * max(stop - block.column, 1))
    fence = _fence(text)
    return "\n".join([f"{fence}python", *lines, fence])


def _excerpt(block: Excerpt) -> str:
    lines = [block.text]
    if block.column is not None:
        stop = block.end_column if block.end_column is not None else len(block.text)
        lines.append(" " * block.column + "^" * max(stop - block.column, 1))
    fence = _fence(block.text)
    return "\n".join([f"{fence}python", *lines, fence])


def _fence(text: str) -> str:
    """Longer than any run of backticks in the user's lines, which then cannot close it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def _words(parts: Words) -> str:
    return "".join(_span(part) for part in parts).replace("\n", " ")


def _span(span: Span) -> str:
    if not span.text.strip():
        return span.text
    if span.style == "code":
        return _code(span.text.strip("`"))
    if span.style in ("strong", "bad"):
        return f"**{_escape(span.text.strip())}**"
    return _escape(span.text)


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
