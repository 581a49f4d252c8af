"""Graph breaks: each site once, with its line, its id and what to do."""

from __future__ import annotations

from compilescope.model.stack import CodeRef
from compilescope.report.advice import advice_blocks
from compilescope.report.blocks import Block, Item, Paragraph, Span, note, prose, words
from compilescope.report.excerpts import excerpt
from compilescope.report.explanation import site_item
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section
from compilescope.rules.sites import Site


def _build(reading: Reading) -> list[Block]:
    sites = enumerate(reading.digest.sites, 1)
    if reading.full:
        return [site_item(number, site, reading) for number, site in sites]
    return [_site(number, site, reading) for number, site in sites]


def _site(number: int, site: Site, reading: Reading) -> Item:
    root = reading.root
    blocks: list[Block] = []
    if site.source:
        blocks.append(excerpt(site))
    blocks.append(Paragraph(words(Span(site.gb_type, "strong"))))
    if site.why:
        blocks.append(Paragraph(prose(site.why)))
    where = f"{place(site.file, site.line, root)} in {site.function}"
    blocks += advice_blocks(site.advice, reading.told, where, brief=True)
    blocks.append(note("; ".join(_notes(site, root))))
    left = words(Span(place(site.file, site.line, root), "strong"), f" in {site.function}")
    right = words(Span(site.gb_id or "no id", "warn"))
    return Item(str(number), left, right, tuple(blocks), site.fingerprint)


def _notes(site: Site, root: str) -> list[str]:
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
    return notes


def _given_up(code: CodeRef, root: str) -> str:
    part = "the rest of " if code.resumed else ""
    return f"{part}{code.function} ({place(code.file, code.line, root)})"


SECTION = Section("breaks", 30, _build, "Graph breaks", "where Dynamo had to stop")
