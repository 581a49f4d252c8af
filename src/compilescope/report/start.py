"""Where to start: the dearest cause that something can be done about."""

from __future__ import annotations

from compilescope.report.blocks import Block, Paragraph, Span, prose, words
from compilescope.report.places import anchor_of, place
from compilescope.report.render.spans import duration
from compilescope.rules.digest import Digest
from compilescope.rules.findings import Finding, by_cost, findings


def start_with(digest: Digest) -> list[Block]:
    found = by_cost(findings(digest))
    chosen = _first(found)
    if chosen is None:
        return []
    at = Span(place(chosen.file, chosen.line, digest.root), "strong", anchor_of(chosen))
    todo = prose(chosen.remedy) if chosen.remedy else words("see what it says there.")
    return [Paragraph(words(at, f" ({_named(chosen)}): ", *todo), "Start with:")]


def _first(found: list[Finding]) -> Finding | None:
    """What ended the program comes before all; then a cause with a change before one with words."""
    if found and found[0].kind == "failure":
        return found[0]
    with_change = [each for each in found if any(advice.diff for advice in each.advice)]
    told = with_change or [each for each in found if each.remedy] or found
    return next(iter(told), None)


def _named(finding: Finding) -> str:
    costs = []
    if finding.lost_ms is not None:
        costs.append(f"{finding.lost_ms:.1f} ms outside graphs")
    if finding.seconds is not None and finding.kind == "recompile":
        costs.append(f"{duration(finding.seconds * 1e9)} of compile time")
    return ", ".join([finding.title, *costs])
