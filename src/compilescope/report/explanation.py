"""The long explanation: each cause with the source around it, why it is so, and what to change."""

from __future__ import annotations

from compilescope.model.run import Run
from compilescope.report.blocks import (
    Block,
    Document,
    Heading,
    Item,
    Listing,
    Paragraph,
    Span,
    Words,
    prose,
    words,
)
from compilescope.report.places import count, first_line, place
from compilescope.rules.digest import Digest
from compilescope.rules.failures import Failure
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.remedy import Remedy
from compilescope.rules.sites import Site
from compilescope.rules.source import Sources

_AROUND = 3
_KINDS = {
    "source": "Change:",
    "config": "Flag:",
    "upgrade": "Upgrade:",
    "judgement": "Consider:",
}


def explanation(
    run: Run, digest: Digest, sites: list[tuple[int, Site]], *, with_rest: bool
) -> Document:
    """These sites, each with its number in the digest; and the failures and recompiles too."""
    sources = Sources(run)
    titles = {site.fingerprint: number for number, site in enumerate(digest.sites, 1)}
    blocks: list[Block] = []
    if with_rest and digest.failures:
        blocks.append(Heading("Failures", "compilation raised an error"))
        for number, failure in enumerate(digest.failures, 1):
            blocks += _failure(number, failure, digest, sources)
    if sites:
        blocks.append(Heading("Graph breaks", "most costly first"))
    for number, site in sites:
        blocks += _site(number, site, digest, sources, titles)
    if with_rest and digest.recompiles:
        blocks.append(Heading("Recompiles", "most frequent first"))
        for number, frame in enumerate(digest.recompiles, 1):
            blocks += _recompiled(number, frame, digest, sources)
    if not blocks:
        blocks.append(
            Paragraph(words(Span("Nothing was lost: there is nothing to explain.", "good")))
        )
    return Document(f"compilescope explain {digest.run}", " ".join(digest.command), tuple(blocks))


def _site(
    number: int, site: Site, digest: Digest, sources: Sources, titles: dict[str, int]
) -> list[Block]:
    where = words(Span(place(site.file, site.line, digest.root), "strong"), f" in {site.function}")
    right = words(Span(f"{site.gb_id or 'no id'} {site.category}", "warn"))
    blocks: list[Block] = [Item(str(number), where, right)]
    blocks += _listing(sources, site.file, site.line, site.column, site.end_column, site.source)
    if site.consequence_of in titles:
        echo = f"An echo of break {titles[site.consequence_of]}: mend that one, and this goes away."
        blocks.append(Paragraph(words(Span(echo, "warn")), depth=1))
    blocks.append(Paragraph(prose(site.why), 1, "Why:"))
    said = first_line(site.explanation)
    if said and said not in site.why:
        blocks.append(Paragraph(words(Span(f"{site.gb_type}. {said}", "dim")), 1, "PyTorch:"))
    blocks += _remedies(site.remedy)
    blocks.append(Paragraph(_toll(site, digest), 1, "Toll:"))
    return blocks


def _toll(site: Site, digest: Digest) -> Words:
    """What the break costs, as far as it was seen."""
    parts = []
    if site.lost_ms is not None:
        parts.append(f"{site.lost_ms:.1f} ms outside compiled graphs")
    parts.append(f"reported {count(site.events, 'time')} in {count(site.frames, 'function')}")
    if len(site.ranks) > 1:
        parts.append(f"on ranks {', '.join(map(str, site.ranks))}")
    for code in site.gave_up:
        part = "the rest of " if code.resumed else ""
        at = place(code.file, code.line, digest.root)
        parts.append(f"{part}{code.function} ({at}) runs eagerly, and may hide further breaks")
    if not site.gave_up and site.outcome == "resumed":
        parts.append("compilation goes on after it")
    if site.wrappers:
        parts.append(f"PyTorch's report wraps it in: {'; '.join(site.wrappers)}")
    return words(Span("; ".join(parts) + ".", "dim"))


def _recompiled(
    number: int, frame: RecompiledFrame, digest: Digest, sources: Sources
) -> list[Block]:
    part = f" from line {frame.resumed_at} on" if frame.resumed_at else ""
    at = place(frame.file, frame.line, digest.root)
    left = words(Span(at, "strong"), f" {frame.function}{part}")
    right = words(Span(count(frame.count, "recompile"), "warn"))
    blocks: list[Block] = [Item(str(number), left, right)]
    for cause in frame.causes:
        blocks += _failed_guard(cause, digest, sources)
    if frame.limit_hit:
        gave_up = (
            f"{frame.function} was compiled {count(frame.count + 1, 'time')}, then Dynamo gave up: "
            "from the next call that fitted none of these, it runs such calls eagerly."
        )
        blocks.append(Paragraph(words(Span(gave_up, "bad")), depth=1))
    return blocks


def _failed_guard(cause: RecompileCause, digest: Digest, sources: Sources) -> list[Block]:
    change = f": expected {cause.expected or '?'}, got {cause.actual or '?'}"
    times = f" (in {count(cause.count, 'recompile')})"
    blocks: list[Block] = [
        Paragraph(words(Span(cause.subject, "code"), change, Span(times, "dim")), 1, "-")
    ]
    if cause.file and cause.line:
        blocks += _listing(sources, cause.file, cause.line, None, None, cause.source, around=0)
    if cause.why:
        blocks.append(Paragraph(prose(cause.why), 1, "Why:"))
    return blocks + _remedies(cause.remedy)


def _failure(number: int, failure: Failure, digest: Digest, sources: Sources) -> list[Block]:
    at = place(failure.file, failure.line, digest.root) if failure.file else "no place known"
    left = words(Span(at, "strong"), f" in {failure.function}" if failure.function else "")
    right = words(Span(f"{failure.gb_id or failure.error} {failure.category}", "bad"))
    blocks: list[Block] = [Item(str(number), left, right)]
    if failure.file:
        blocks += _listing(
            sources, failure.file, failure.line, failure.column, failure.end_column, failure.source
        )
    blocks.append(Paragraph(prose(failure.why or first_line(failure.message)), 1, "Why:"))
    return blocks + _remedies(failure.remedy)


def _remedies(remedies: tuple[Remedy, ...]) -> list[Block]:
    return [Paragraph(prose(remedy.text), 1, _KINDS[remedy.kind]) for remedy in remedies]


def _listing(
    sources: Sources,
    file: str,
    line: int,
    column: int | None,
    end_column: int | None,
    source: str,
    around: int = _AROUND,
) -> list[Block]:
    """The place and some lines around it; the one line of the stack where there is no more."""
    lines = sources.lines(file)
    if not 0 < line <= len(lines):
        if not source.strip():
            return []
        return [Listing(line, (source,), line, column, end_column)]
    first = max(1, line - around)
    last = min(len(lines), line + around)
    return [Listing(first, tuple(lines[first - 1 : last]), line, column, end_column)]
