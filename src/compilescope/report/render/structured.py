"""Documents as JSON: the same sections and blocks, for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compilescope.base.texts import plain_json
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.json_form import digest_json, findings_json
from compilescope.knowledge.analysis.overview import Overview
from compilescope.report.blocks import Document, Quote

SCHEMA = 1
"""Of the document, whose keys are in docs/reference/json.md."""


def to_json(
    documents: Sequence[Document],
    digests: Sequence[Digest],
    whole: Overview | None = None,
    quotes: Sequence[Mapping[str, Quote]] = (),
) -> str:
    """One entry a run: its digest as `show --json` has it, its findings, its sections. `whole` is
    of several runs, `quotes` a language model's words about the causes of each."""
    reports = [
        {
            "run": seen.run,
            "summary": digest_json(seen),
            "findings": findings_json(document.findings),
            "sections": document.parts,
            "llm": {name: quote.text for name, quote in said.items()},
        }
        for document, seen, said in zip(
            documents, digests, quotes or [{}] * len(documents), strict=True
        )
    ]
    return plain_json({"schema": SCHEMA, "overview": whole, "reports": reports}, indent=1) + "\n"
