"""Compilations that failed."""

from __future__ import annotations

from compilescope.report.blocks import Block, Excerpt, Heading, Item, Paragraph, Span, prose, words
from compilescope.report.places import count, first_line, place
from compilescope.report.section import Section
from compilescope.rules.digest import Digest


def _build(digest: Digest) -> list[Block]:
    if not digest.failures:
        return []
    blocks: list[Block] = [Heading("Failures", "compilation raised an error")]
    for number, failure in enumerate(digest.failures, 1):
        where = place(failure.file, failure.line, digest.root) if failure.file else "no place known"
        left = words(Span(where, "strong"), f" in {failure.function}" if failure.function else "")
        name = f"{failure.gb_id} " if failure.gb_id else ""
        blocks.append(Item(str(number), left, words(Span(name + failure.error, "bad"))))
        if failure.source:
            blocks.append(Excerpt(failure.source, failure.column, failure.end_column))
        blocks.append(Paragraph(prose(failure.why or first_line(failure.message)), depth=1))
        if failure.remedy:
            blocks.append(Paragraph(prose(failure.remedy[0].text), 1, "Try:"))
        fate = (
            "suppressed: the function runs eagerly"
            if failure.suppressed
            else "raised to the program"
        )
        backend = f" by backend {failure.backend}" if failure.backend else ""
        times = count(failure.count, "time")
        note = f"{failure.phase} compilation{backend}, {times}; {fate}"
        blocks.append(Paragraph(words(Span(note, "dim")), depth=1))
    return blocks


SECTION = Section("failures", 20, _build)
