"""The long explanation: each cause with the source around it, why it is so, and what to change."""

from __future__ import annotations

from compilescope.model.stack import origin_of
from compilescope.report.advice import advice_blocks
from compilescope.report.blocks import (
    Block,
    Document,
    Item,
    Paragraph,
    Part,
    Span,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.excerpts import lines_at, listing
from compilescope.report.failing import torchs_page, why_it_failed
from compilescope.report.links import page_link
from compilescope.report.places import count, first_line, place
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading
from compilescope.report.stacks import folded_stacks
from compilescope.rules.digest import Digest
from compilescope.rules.failures import Failure
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.sites import Site


def explanation(reading: Reading, sites: list[tuple[int, Site]], *, with_rest: bool) -> Document:
    """These sites, each with its number in the digest; and the failures and recompiles too."""
    seen = reading.digest
    parts = []
    if with_rest and seen.failures:
        failed = [failure_item(n, failure, reading) for n, failure in enumerate(seen.failures, 1)]
        parts.append(Part("failures", "Failures", tuple(failed), "compilation raised an error"))
    if sites:
        broken = [site_item(number, site, reading) for number, site in sites]
        parts.append(Part("breaks", "Graph breaks", tuple(broken), "most costly first"))
    if with_rest and seen.recompiles:
        again = [recompile_item(n, frame, reading) for n, frame in enumerate(seen.recompiles, 1)]
        parts.append(Part("recompiles", "Recompiles", tuple(again), "most compile time first"))
    if not parts:
        nothing = words(Span("Nothing was lost: there is nothing to explain.", "good"))
        parts.append(Part("nothing", "", (Paragraph(nothing),)))
    return Document(f"compilescope explain {seen.run}", " ".join(seen.command), tuple(parts))


def site_item(number: int, site: Site, reading: Reading) -> Item:
    """A break."""
    seen = reading.digest
    blocks = listing(site, reading.sources)
    titles = {other.fingerprint: n for n, other in enumerate(seen.sites, 1)}
    if site.consequence_of in titles:
        root = Span(f"break {titles[site.consequence_of]}", "warn", site.consequence_of)
        echo = words(
            Span("An echo of ", "warn"), root, Span(": mend that one, and this goes away.", "warn")
        )
        blocks.append(Paragraph(echo))
    blocks.append(Paragraph(prose(site.why), "Why:"))
    said = first_line(site.explanation)
    if said and said not in site.why:
        blocks.append(Paragraph(words(Span(f"{site.gb_type}. {said}", "dim")), "PyTorch:"))
    where = f"{place(site.file, site.line, seen.root)} in {site.function}"
    blocks += advice_blocks(site.advice, reading.told, where, brief=False)
    blocks.append(Paragraph(_cost(site, seen), "Cost:"))
    blocks += page_link(site.gb_id, reading.pages)
    if reading.full:
        blocks += folded_stacks(site.because, reading)
    left = words(Span(place(site.file, site.line, seen.root), "strong"), f" in {site.function}")
    right = words(Span(f"{site.gb_id or 'no id'} {site.category}", "warn"))
    tags = ("kind:break", f"category:{site.category}", _whose(site.file))
    return Item(str(number), left, right, tuple(blocks), site.fingerprint, tags)


def _whose(file: str) -> str:
    return "whose:yours" if origin_of(file) == "user" else "whose:library"


def _cost(site: Site, digest: Digest) -> Words:
    """What the break costs, as far as it was seen."""
    parts = []
    if site.lost_ms is not None:
        parts.append(f"{site.lost_ms:.1f} ms outside compiled graphs")
    if site.retrace_seconds is not None:
        parts.append(f"{duration(site.retrace_seconds * 1e9)} of tracing thrown away")
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


def recompile_item(number: int, frame: RecompiledFrame, reading: Reading) -> Item:
    """A function compiled more than once."""
    part = f" from line {frame.resumed_at} on" if frame.resumed_at else ""
    at = place(frame.file, frame.line, reading.root)
    left = words(Span(at, "strong"), f" {frame.function}{part}")
    right = words(Span(recompile_cost(frame), "warn"))
    blocks: list[Block] = []
    for cause in frame.causes:
        blocks += _failed_guard(cause, frame, reading)
    if frame.limit_hit:
        gave_up = (
            f"{frame.function} was compiled {count(frame.count + 1, 'time')}, then Dynamo gave up: "
            "from the next call that fitted none of these, it runs such calls eagerly."
        )
        blocks.append(Paragraph(words(Span(gave_up, "bad"))))
    if reading.full:
        blocks += folded_stacks(frame.because, reading)
    tags = ("kind:recompile", _whose(frame.file))
    return Item(str(number), left, right, tuple(blocks), recompile_anchor(frame), tags)


def recompile_anchor(frame: RecompiledFrame) -> str:
    return f"recompile-{frame.because[0]}" if frame.because else ""


def recompile_cost(frame: RecompiledFrame) -> str:
    """`7 recompiles, 7.30 s`."""
    spent = f", {duration(frame.seconds * 1e9)}" if frame.seconds is not None else ""
    return count(frame.count, "recompile") + spent


def _failed_guard(cause: RecompileCause, frame: RecompiledFrame, reading: Reading) -> list[Block]:
    change = f": expected {cause.expected or '?'}, got {cause.actual or '?'}"
    spent = f", {duration(cause.seconds * 1e9)}" if cause.seconds is not None else ""
    times = f" (in {count(cause.count, 'recompile')}{spent})"
    if cause.also:
        change += f", and {len(cause.also)} more like it"
    blocks: list[Block] = [
        Paragraph(words(Span(cause.subject, "code"), change, Span(times, "dim")), "-")
    ]
    if cause.file and cause.line:
        blocks += lines_at(reading.sources, cause.file, cause.line, cause.source)
    if cause.why:
        blocks.append(Paragraph(prose(cause.why), "Why:"))
    where = f"`{cause.subject}` in {frame.function}"
    return blocks + advice_blocks(cause.advice, reading.told, where, brief=False)


def failure_item(number: int, failure: Failure, reading: Reading) -> Item:
    """A compilation that raised."""
    at = place(failure.file, failure.line, reading.root) if failure.file else "no place known"
    left = words(Span(at, "strong"), f" in {failure.function}" if failure.function else "")
    right = words(Span(f"{failure.gb_id or failure.error} {failure.category}", "bad"))
    blocks: list[Block] = []
    if failure.file:
        blocks += listing(failure, reading.sources)
    blocks += why_it_failed(failure, "Why:")
    blocks += advice_blocks(failure.advice, reading.told, at, brief=False)
    blocks += repro_words(failure)
    blocks.append(note(fate(failure)))
    blocks += page_link(failure.gb_id, reading.pages) + torchs_page(failure)
    if reading.full:
        blocks += folded_stacks(failure.because, reading)
    tags = ("kind:failure", f"category:{failure.category}", _whose(failure.file))
    return Item(str(number), left, right, tuple(blocks), failure_anchor(failure), tags)


def repro_words(failure: Failure) -> list[Block]:
    """The script that shows it, or why there is none, where one was asked for."""
    if failure.repro:
        said = words(Span(failure.repro, "code"), " in the run's folder, proven in a fresh process")
        return [Paragraph(said, "Repro:")]
    return [Paragraph(prose(failure.no_repro), "No repro:")] if failure.no_repro else []


def failure_anchor(failure: Failure) -> str:
    return f"failure-{failure.because[0]}" if failure.because else ""


def fate(failure: Failure) -> str:
    """In which compilation it failed, how often, and what became of the program."""
    end = "suppressed: the function runs eagerly" if failure.suppressed else "raised to the program"
    backend = f" by backend {failure.backend}" if failure.backend else ""
    return f"{failure.phase} compilation{backend}, {count(failure.count, 'time')}; {end}"
