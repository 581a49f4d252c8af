"""Puts the sections together."""

from __future__ import annotations

from compilescope.plugins import discover
from compilescope.report import sections
from compilescope.report.blocks import Block, Document
from compilescope.report.section import Section
from compilescope.rules.digest import Digest


def all_sections() -> list[Section]:
    return sorted(discover(sections, "SECTION", Section), key=lambda section: section.order)


def summary_document(digest: Digest) -> Document:
    """The report that a user sees first."""
    blocks: list[Block] = []
    for section in all_sections():
        blocks += section.build(digest)
    command = " ".join(digest.command)
    return Document(
        title=f"compilescope {digest.run}",
        subtitle=" · ".join(part for part in (command, f"torch {digest.torch}") if part)
        if digest.torch
        else command,
        blocks=tuple(blocks),
    )
