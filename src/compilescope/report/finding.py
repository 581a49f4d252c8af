"""One finding as an item: what a gate, a comparison and a failed test show of a cause,
with its excerpt of source and its links.
"""

from __future__ import annotations

from compilescope.findings.breaks import BreakFinding
from compilescope.findings.failures import FailureFinding
from compilescope.findings.finding import Finding
from compilescope.patterns import late
from compilescope.registry.pages import Pages, pytorch_page
from compilescope.report.advice import ShownAdvice, advice_blocks
from compilescope.report.blocks import Block, Excerpt, Item, Listing, Paragraph, Span, prose, words
from compilescope.report.places import first_line, place, repro_place
from compilescope.source.spots import Sources

# Chosen: what a reader needs to know the place again.
_AROUND = 3
_MOST_LINES = 12
"""Of an expression that goes on and on. Chosen likewise."""
_OF_PYTORCH = late(r"https://(?:(?:[\w-]+\.)*pytorch\.org|(?:meta-)?pytorch\.github\.io)/")


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
        blocks += advice_blocks(finding.advice, ShownAdvice(), "", brief=True)
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


# The links from a graph break to its page in the registry, and to PyTorch's own page of it.


def page_link(gb_id: str | None, pages: Pages | None, link: str = "") -> list[Block]:
    """Its page, or the command that shows the same; nothing for a break without an id.

    `link` is where torch's own message leads, where it was kept.
    """
    hint = pages.hint(gb_id) if pages is not None and gb_id else ""
    link = link or (pytorch_page(gb_id) if hint else "")
    if not hint:
        return _pytorch_link(link)
    url = pages.url(gb_id) if pages is not None else ""
    more = Paragraph(words(Span(hint, url=url) if url else Span(hint, "code")), "More:")
    return [more, *(_pytorch_link(link) if link != url else [])]


def _pytorch_link(link: str) -> list[Block]:
    """On a line of its own: a link that is broken in two cannot be copied.

    A record may come from anyone: what leads elsewhere is no page of PyTorch's, and no link.
    """
    if not link:
        return []
    known = _OF_PYTORCH.match(link) is not None
    return [Paragraph(words(Span("PyTorch's page", url=link) if known else Span(link, "code")))]


# The user's lines at a place, with the expression marked: one line, or some lines around it.


def excerpt(found: BreakFinding | FailureFinding | Finding) -> Excerpt:
    """The line. An expression of several lines is marked up to the end of the first."""
    several = found.end_line is not None and found.end_line > found.line
    end = len(found.source.rstrip()) if several else found.end_column
    return Excerpt(found.source, found.column, end)


def listing(found: BreakFinding | FailureFinding, sources: Sources) -> list[Block]:
    """The whole expression, and some lines around it."""
    end = found.end_line or found.line
    blocks = lines_at(
        sources, found.file, found.line, found.source, _AROUND, min(end, found.line + _MOST_LINES)
    )
    return [
        Listing(
            block.first_line,
            block.lines,
            block.marked_line,
            found.column,
            found.end_column,
            end if end > found.line else None,
        )
        for block in blocks
    ]


def lines_at(
    sources: Sources, file: str, line: int, source: str, around: int = 0, end: int = 0
) -> list[Listing]:
    """Some lines around a place; the one line of the stack where there is no more."""
    lines = sources.lines(file)
    if not 0 < line <= len(lines):
        return [Listing(line, (source,), line)] if source.strip() else []
    first = max(1, line - around)
    last = min(len(lines), max(line, end) + around)
    return [Listing(first, tuple(lines[first - 1 : last]), line)]


# Why a compilation failed: the innermost error, what it means, and the script that shows it.


def why_it_failed(failure: FailureFinding, hanging: str = "") -> list[Block]:
    why = failure.why or first_line(failure.text)
    if not failure.cause:
        return [Paragraph(prose(why), hanging)]
    blocks: list[Block] = [Paragraph(words(Span(failure.cause, "strong")))]
    rest = why.removesuffix(failure.cause).rstrip(": ")
    if rest:
        blocks.append(Paragraph(prose(rest.rstrip(".") + "."), hanging))
    return blocks


def repro_words(failure: FailureFinding, cwd: str = "") -> list[Block]:
    """The script that shows it, or why there is none, where one was asked for."""
    if failure.repro:
        path, inside = repro_place(failure.repro, cwd)
        said = words(Span(path, "code"), f"{inside}, verified in a fresh process")
        return [Paragraph(said, "Repro:")]
    return [Paragraph(prose(failure.no_repro), "No repro:")] if failure.no_repro else []
