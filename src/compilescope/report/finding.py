"""One finding as an item: what a gate, a comparison and a failed test show of a cause, with its
excerpt of source and its links.

What to do about it is drawn the same wherever it is told: the change and its worth.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.findings.remedy import Advice, Status
from compilescope.knowledge.registry.pages import Pages, pytorch_page
from compilescope.knowledge.source.spots import Sources
from compilescope.record.stack import Frame
from compilescope.report.blocks import (
    Block,
    Diff,
    Excerpt,
    Fold,
    Item,
    Listing,
    Paragraph,
    Span,
    note,
    prose,
    words,
)
from compilescope.report.places import first_line, place, repro_place
from compilescope.report.render.code_lines import diff_kind

# Chosen: what a reader needs to know the place again.
_AROUND = 3
_MOST_SOURCE_LINES = 12
"""Of an expression that goes on and on. Chosen likewise."""
_OF_PYTORCH = late(r"https://(?:(?:[\w-]+\.)*pytorch\.org|(?:meta-)?pytorch\.github\.io)/")


def finding_item(number: int, finding: Finding, root: str, pages: Pages | None = None) -> Item:
    """One cause: its place, its line, why, and what to try."""
    blocks: list[Block] = []
    if finding.source.strip():
        blocks.append(excerpt(finding))
    if not _is_named(finding):
        blocks.append(Paragraph(words(Span(finding.title, "strong"))))
    blocks += called_at(finding, root)
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


def called_at(finding: Finding, root: str) -> list[Block]:
    """The user's line that led to a place in an installed package, or with the value that makes a
    function compile again: nothing where the place itself says as much."""
    call = finding.called_at
    if call is None or not (_is_of_call(finding) or not finding.own):
        return []
    return [_other_place("called at ", call.file, call.line, call.function, call.source, root)]


def leading(finding: Finding) -> Finding | Frame:
    """The place that a reader is told of: the user's call, where a guard's line is a library's."""
    call = finding.called_at
    return call if call and finding.kind == "recompile" and not finding.own else finding


def leads_to(finding: Finding, root: str) -> list[Block]:
    """The place of a finding where the user's line that led there is told of first."""
    at = finding.file, finding.line, finding.function, finding.source
    return [_other_place("guarded at ", *at, root)]


def _other_place(
    lead: str, file: str, line: int, function: str, source: str, root: str
) -> Paragraph:
    inside = f" in {function}" if function else ""
    code = "" if source.rstrip().endswith(("(", "[", "{")) else source.strip()
    told = (": ", Span(f"`{code}`" if "`" not in code else code, "code")) if code else ()
    at = Span(place(file, line, root), "strong")
    return Paragraph(words(Span(lead, "dim"), at, f"{inside}", *told))


_NOT_OF_CALL = late(r"^(?:self\b|G\b|___|$)|\.training$")


def _is_of_call(finding: Finding) -> bool:
    """Is it about an argument: a value that comes from where the call is?"""
    return (
        isinstance(finding, RecompileFinding)
        and finding.guard_kind != "GLOBAL_STATE"
        and _NOT_OF_CALL.search(finding.subject) is None
    )


def listing(found: BreakFinding | FailureFinding, sources: Sources) -> list[Block]:
    """The whole expression, and some lines around it."""
    end = found.end_line or found.line
    blocks = lines_at(
        sources,
        found.file,
        found.line,
        found.source,
        _AROUND,
        min(end, found.line + _MOST_SOURCE_LINES),
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


_LABELS: dict[Status, str] = {
    "proven": "Verified:",
    "proposed": "Try:",
    "by hand": "By hand:",
    "not tried": "Not tried:",
}
_UNPROVEN = "unverified; `compilescope fix` can verify it"
_UNPROVEN_IN_PYTHON = "unverified"
_UNPROVEN_IN_LOG = "unverified; `compilescope logs --script FILE` can verify it"
_UNPROVEN_FROM_STDIN = (
    "unverified; save the program in a file, and `compilescope fix` can verify it"
)
_PROVEN = "verified: with this change the cause is gone and the results are the same"
_PROVEN_HERE = (
    "verified by running the program here: with this change the cause is gone and the results are "
    "the same"
)
_MOST_DIFF_LINES = 24
"""Of a diff in a summary. Chosen: a summary stays a screen or two."""


class ShownAdvice(msgspec.Struct, frozen=True):
    """What one document has shown of changes so far: each change is shown once."""

    in_python: bool = False
    """Read in a notebook, where nobody can type a command."""
    from_log: bool = False
    """Of a log, whose program may be anywhere."""
    doubts: dict[str, str] = msgspec.field(default_factory=dict)
    """By the id of a fix: why it could not be verified, where that was tried."""
    from_stdin: bool = False
    """Of a program that is in no file."""
    runner: str = ""
    """What ran the program, where `fix` does not: `pytest`."""
    folding: bool = False
    """Read on a page, where what only some readers want can be folded away."""
    places: dict[str, str] = msgspec.field(default_factory=dict)
    """By its text: where each change was shown first."""
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    """By its words: where each advice was given first."""


def advice_blocks(
    advice: tuple[Advice, ...],
    told: ShownAdvice,
    where: str,
    *,
    brief: bool,
    whole: str = "compilescope explain",
) -> list[Block]:
    """In a summary the first alone, and `whole` shows its whole diff; else all."""
    drawn = _drawn(advice[:1] if brief else advice, told, where, whole if brief else "")
    first, others = next(drawn, []), [block for blocks in drawn for block in blocks]
    if not told.folding or not others:
        return [*first, *others]
    ways = "1 other way" if len(advice) == 2 else f"{len(advice) - 1} other ways"
    return [*first, Fold(words(ways), tuple(others))]


def _drawn(
    advice: tuple[Advice, ...], told: ShownAdvice, where: str, whole: str
) -> Iterator[list[Block]]:
    for number, each in enumerate(advice):
        blocks: list[Block] = []
        label = _LABELS[each.status] if not number else "Or:"
        first = told.places.get(each.diff) if each.diff else None
        before = told.texts.setdefault(each.text, where)
        if first is not None and first == before != where:
            yield [Paragraph(words(f"same as {first}"), label)]
            continue
        # Others than the first are for a reader who will not take that one: no diff, but the id.
        fix = f"`{each.fix}`: " if number and each.diff and first is None else ""
        blocks.append(Paragraph(prose(fix + each.text), label))
        if first is not None and first != where:
            blocks.append(note(f"same change as for {first}"))
        elif each.diff and first is None and not number:
            told.places[each.diff] = where
            blocks.append(_diff(each, told, whole))
            blocks.append(note(_worth(each, told)))
        yield blocks


def advice_text(finding: Finding) -> str:
    """What to try first, as plain text: for formats that carry sentences."""
    if not finding.advice:
        return f"By hand: {finding.first_step}" if finding.first_step else ""
    first = finding.advice[0]
    label = _LABELS[first.status]
    if not first.diff:
        return f"{label} {first.text}"
    worth = _worth(first, ShownAdvice()).replace("`", "")
    return f"{label} {first.text} ({worth})\n{first.diff.rstrip()}"


def _worth(advice: Advice, told: ShownAdvice) -> str:
    if advice.status == "proven":
        return _PROVEN_HERE if told.from_log else _PROVEN
    doubt = told.doubts.get(advice.fix or "")
    if doubt:
        return f"unverified: {doubt.rstrip('.')}"
    if told.from_log:
        return _UNPROVEN_IN_LOG
    if told.from_stdin:
        return _UNPROVEN_FROM_STDIN
    if told.runner:
        return f"unverified: `compilescope fix` runs scripts and modules, not {told.runner}"
    return _UNPROVEN_IN_PYTHON if told.in_python else _UNPROVEN


def _diff(advice: Advice, told: ShownAdvice, whole: str) -> Block:
    if not whole:
        return Diff(advice.diff)
    lines = _gist(advice.diff)
    if len(lines) <= _MOST_DIFF_LINES:
        return Diff("\n".join(lines) + "\n", "" if told.in_python else whole)
    more = "`.digest` has it" if told.in_python else f"`{whole}` shows it"
    return note(f"a {len(lines)}-line change; {more}")


def _gist(diff: str) -> list[str]:
    """The changed lines, each stretch with one line before and after it, and its place."""
    lines = diff.splitlines()
    kinds = [diff_kind(line) for line in lines]
    files = sum(line.startswith("+++ ") for line in lines)
    near = {
        number + step
        for number, kind in enumerate(kinds)
        if kind in ("added", "removed")
        for step in (-1, 0, 1)
    }
    return [
        line
        for number, (line, kind) in enumerate(zip(lines, kinds, strict=True))
        if (kind == "file" and files > 1)
        or (kind == "place" and (files > 1 or kinds.count("place") > 1))
        or (number in near and kind not in ("file", "place"))
    ]
