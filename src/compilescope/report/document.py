"""Puts the sections together."""

from __future__ import annotations

from compilescope.plugins import discover
from compilescope.report import sections
from compilescope.report.blocks import Document, Part, Record
from compilescope.report.section import Reading, Section
from compilescope.rules.findings import findings
from compilescope.rules.gate.doubts import doubts


def all_sections() -> list[Section]:
    return sorted(discover(sections, "SECTION", Section), key=lambda section: section.order)


def report_document(reading: Reading) -> Document:
    """The whole story, or what a user sees first."""
    parts = []
    for section in all_sections():
        if not (reading.full or section.in_summary):
            continue
        blocks = tuple(section.build(reading))
        if blocks:
            parts.append(Part(section.id, section.title, blocks, section.note))
    seen = reading.digest
    command = " ".join(seen.command)
    torch = f"torch {seen.torch}" if seen.torch else ""
    return Document(
        title=f"compilescope {seen.run}",
        subtitle=" · ".join(text for text in (command, torch) if text),
        parts=tuple(parts),
        findings=tuple(findings(seen)),
        root=seen.root,
        record=record_of(reading),
        site=reading.pages.site if reading.pages else "",
    )


def record_of(reading: Reading) -> Record:
    seen = reading.digest
    return Record(
        run=seen.run,
        command=seen.command,
        cwd=reading.run.header.cwd,
        torch=seen.torch,
        exit_status=seen.exit_status,
        signal=seen.signal,
        doubts=tuple(doubts(seen)),
    )
