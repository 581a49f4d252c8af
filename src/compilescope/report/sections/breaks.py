"""Graph breaks: each site once, with its line, its id and what to do."""

from __future__ import annotations

from compilescope.model.stack import CodeRef
from compilescope.report.blocks import Block, Excerpt, Heading, Item, Paragraph, Span, prose, words
from compilescope.report.places import count, first_line, place
from compilescope.report.section import Section
from compilescope.rules.digest import Digest
from compilescope.rules.sites import Site


def _build(digest: Digest) -> list[Block]:
    if not digest.sites:
        return []
    blocks: list[Block] = [Heading("Graph breaks", "where Dynamo had to stop")]
    for number, site in enumerate(digest.sites, 1):
        blocks += _site(number, site, digest.root)
    return blocks


def _site(number: int, site: Site, root: str) -> list[Block]:
    left = words(Span(place(site.file, site.line, root), "strong"), f" in {site.function}")
    blocks: list[Block] = [Item(str(number), left, words(Span(site.gb_id or "no id", "warn")))]
    if site.source:
        blocks.append(Excerpt(site.source, site.column, site.end_column))
    blocks.append(Paragraph(words(Span(site.gb_type, "strong")), depth=1))
    if site.why:
        blocks.append(Paragraph(prose(site.why), depth=1))
    if site.remedy:
        blocks.append(Paragraph(prose(site.remedy[0].text), 1, "Try:"))
    elif site.hints:
        blocks.append(Paragraph(prose(first_line(site.hints[0])), 1, "Try:"))
    notes = [f"{site.lost_ms:.1f} ms lost outside graphs"] if site.lost_ms is not None else []
    notes.append(f"reported {count(site.events, 'time')}")
    if len(site.ranks) > 1:
        notes.append(f"on ranks {', '.join(map(str, site.ranks))}")
    if site.tests:
        more = f" and {len(site.tests) - 1} more" if len(site.tests) > 1 else ""
        notes.append(f"in {site.tests[0]}{more}")
    if site.gave_up:
        given_up = ", ".join(_given_up(code, root) for code in site.gave_up[:2])
        notes.append(f"{given_up} runs eagerly because of it, which may hide further breaks")
    elif site.outcome == "resumed":
        notes.append("compilation goes on after it")
    if site.in_torch:
        notes.append("the code it was tracing is torch's own")
    blocks.append(Paragraph(words(Span("; ".join(notes), "dim")), depth=1))
    return blocks


def _given_up(code: CodeRef, root: str) -> str:
    part = "the rest of " if code.resumed else ""
    return f"{part}{code.function} ({place(code.file, code.line, root)})"


SECTION = Section("breaks", 30, _build)
