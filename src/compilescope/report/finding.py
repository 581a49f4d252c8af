"""One finding as an item: what a gate, a comparison and a failed test show of a cause."""

from __future__ import annotations

from compilescope.findings.finding import Finding
from compilescope.registry.pages import Pages
from compilescope.report.advice import Told, advice_blocks
from compilescope.report.blocks import Block, Item, Paragraph, Span, prose, words
from compilescope.report.excerpts import excerpt
from compilescope.report.links import page_link
from compilescope.report.places import first_line, place


def finding_item(number: int, finding: Finding, root: str, pages: Pages | None = None) -> Item:
    """One cause: its place, its line, why, and what to try."""
    blocks: list[Block] = []
    if finding.source.strip():
        blocks.append(excerpt(finding))
    if not _is_named(finding):
        blocks.append(Paragraph(words(Span(finding.title, "strong"))))
    why = first_line(finding.message)
    if why and why != finding.title:
        blocks.append(Paragraph(prose(why)))
    if finding.advice:
        blocks += advice_blocks(finding.advice, Told(), "", brief=True)
    elif finding.first_step:
        blocks.append(Paragraph(prose(first_line(finding.first_step)), "By hand:"))
    blocks += page_link(finding.rule_id if finding.rule_id.startswith("GB") else None, pages)
    at = place(finding.file, finding.line, root) if finding.file else "unknown place"
    at = finding.title if _is_named(finding) else at
    left = words(Span(at, "strong"), f" in {finding.function}" if finding.function else "")
    right = words(Span(finding.rule_id, "bad" if finding.level == "error" else "warn"))
    tags = (f"kind:{finding.kind}",)
    return Item(str(number), left, right, tuple(blocks), finding.fingerprint, tags)


def _is_named(finding: Finding) -> bool:
    """A job, a benchmark or a value: its title names it, and it may have no place in any file."""
    named = finding.rule_id.startswith(("job/", "bench/"))
    return named or (finding.kind == "difference" and not finding.file)
