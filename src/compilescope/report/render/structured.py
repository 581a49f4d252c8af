"""Documents as JSON: the same sections and blocks, for machines."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compilescope.report.blocks import Document
from compilescope.rules.digest import Digest

SCHEMA = 1


def to_json(documents: Sequence[Document], digests: Sequence[Digest]) -> str:
    """One entry a run: its digest as `show --json` has it, its findings, its sections."""
    reports = [
        {
            "run": seen.run,
            "summary": seen,
            "findings": document.findings,
            "sections": document.parts,
        }
        for document, seen in zip(documents, digests, strict=True)
    ]
    data = msgspec.json.encode({"schema": SCHEMA, "reports": reports})
    return msgspec.json.format(data, indent=1).decode() + "\n"
