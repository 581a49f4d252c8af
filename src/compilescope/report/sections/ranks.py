"""What differs between ranks, and where they first part ways."""

from __future__ import annotations

from compilescope.knowledge.analysis.ranks import Divergence, RankReport, compare_ranks
from compilescope.report.blocks import Block, Heading, Item, Paragraph, Span, Table, words
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section

_MOST = 50
"""Ranks that differ. Chosen: the rest is counted."""


def _build(reading: Reading) -> list[Block]:
    report = compare_ranks(reading.run, reading.findings)
    if report is None:
        return []
    blocks: list[Block] = [_verdict(report), _table(report)]
    shown = report.divergences[:_MOST]
    blocks += [_divergence(number, found) for number, found in enumerate(shown, 1)]
    if report.left_out:
        more = f"{report.left_out:,} more ranks are not compared."
        blocks.append(Paragraph(words(Span(more, "warn"))))
    if report.partial:
        blocks.append(Heading("Causes on only some ranks"))
    for finding in report.partial[:_MOST]:
        at = Span(place(finding.file, finding.line, reading.root), "strong")
        ranks = ", ".join(map(str, finding.ranks))
        only = Span(f"  only on rank {ranks}", "warn")
        blocks.append(Paragraph(words(at, f" {finding.title}", only), "-"))
    if len(report.partial) > _MOST:
        blocks.append(Paragraph(words(f"and {len(report.partial) - _MOST} more"), "-"))
    return blocks


def _verdict(report: RankReport) -> Paragraph:
    if not report.divergences:
        return Paragraph(words(Span("All ranks compiled the same code in the same order.", "good")))
    apart = [str(found.rank) for found in report.divergences]
    if len(apart) > _MOST:
        apart = [*apart[:_MOST], f"and {len(apart) - _MOST} more"]
    label = "Rank" if len(apart) == 1 else "Ranks"
    goes = "diverges" if len(apart) == 1 else "diverge"
    return Paragraph(words(Span(f"{label} {', '.join(apart)} {goes}.", "bad")))


def _table(report: RankReport) -> Table:
    columns = ("rank", "graphs", "breaks", "eager", "recompiles", "failures", "compile s")
    rows = tuple(
        tuple(
            words(text)
            for text in (
                str(rank.rank),
                str(rank.graphs),
                str(rank.sites),
                str(rank.eager),
                str(rank.recompiles),
                str(rank.failures),
                f"{rank.compile_seconds:.2f}",
            )
        )
        for rank in report.ranks
    )
    return Table(columns, rows, tuple(range(len(columns))))


def _divergence(number: int, found: Divergence) -> Item:
    alike = f"after {count(found.step, 'identical step')}" if found.step else "from the first step"
    nothing = "nothing more to compile"
    blocks = (
        Paragraph(words(found.expected or nothing), "lowest rank:"),
        Paragraph(words(found.found or nothing), f"rank {found.rank}:"),
    )
    left = words(Span(f"rank {found.rank}", "strong"), f" diverges {alike}")
    return Item(str(number), left, blocks=blocks, tags=("kind:divergence",))


SECTION = Section("ranks", 90, _build, "Ranks", "how they differ", in_summary=False)
