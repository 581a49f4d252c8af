"""Where to start: the most expensive causes, each with the change that removes it."""

from __future__ import annotations

from msgspec.structs import replace

from compilescope.findings.finding import Finding
from compilescope.findings.remedy import is_not_tried
from compilescope.report.advice import advice_blocks
from compilescope.report.blocks import (
    Block,
    Heading,
    Item,
    Paragraph,
    Span,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.finding import excerpt, repro_words
from compilescope.report.places import anchor_of, count, place
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading

_MOST_ON_A_PAGE = 3
"""Causes to begin with. Chosen: more would be a list, not a start; a terminal shows one."""


def start_with(reading: Reading) -> list[Block]:
    """What ended the program comes before all; then causes with a change before those with words.
    Each keeps its number in the list of all causes by cost, where there is one."""
    found = list(enumerate(reading.causes, 1))
    if not found:
        return []
    most = _MOST_ON_A_PAGE if reading.page else 1
    chosen = _distinct(sorted(found, key=lambda each: _rank(each[1])))[:most]
    return [
        Heading("Start here", _note(chosen, found)),
        *_untried(reading),
        # A page has no list of all causes whose numbers these could be.
        *(
            cause_item(place if reading.page else number, finding, reading)
            for place, (number, finding) in enumerate(chosen, 1)
        ),
    ]


def _distinct(ranked: list[tuple[int, Finding]]) -> list[tuple[int, Finding]]:
    """One for each change: what it mends besides is told in its own place."""
    diffs: set[str] = set()
    kept = []
    for number, finding in ranked:
        diff = finding.advice[0].diff if finding.advice else ""
        if not diff or diff not in diffs:
            kept.append((number, finding))
        diffs.add(diff)
    return kept


def _note(chosen: list[tuple[int, Finding]], found: list[tuple[int, Finding]]) -> str:
    if len(found) == 1:
        return ""
    passed_over = chosen[0][0] != 1
    several = "causes" if len(chosen) > 1 else "cause"
    # More expensive ones may have a fix too where nobody looked.
    is_known = not any(is_not_tried(each.advice) for _, each in found[: chosen[-1][0]])
    superlative = "the most expensive" if is_known or not passed_over else "expensive"
    return f"{superlative} {several}" + (" with a fix to try" if passed_over else "")


def _untried(reading: Reading) -> list[Block]:
    """Of how many causes it is not known whether there is a fix; a list of causes says so itself,
    and a page has none."""
    untried = sum(is_not_tried(each.advice) for each in reading.causes)
    if not untried or not reading.full:
        return []
    total = len(reading.causes)
    return [
        note(
            f"This report looked for fixes for {total - untried:,} of {total:,} causes. "
            'For the others, marked "Not tried", `compilescope explain --cause N` looks.'
        )
    ]


def _rank(finding: Finding) -> tuple[bool, bool, bool]:
    ended_it = finding.kind == "failure" and finding.level == "error"
    return (
        not ended_it,
        finding.level == "note",
        not any(advice.diff for advice in finding.advice),
    )


def cause_item(number: int, finding: Finding, reading: Reading) -> Item:
    """A cause in short: its line, why, and the first change."""
    where = f"{place(finding.file, finding.line, reading.root)} in {finding.function}"
    target = anchor_of(finding) if reading.full else ""
    blocks: list[Block] = [excerpt(finding)] if finding.source.strip() else []
    if finding.kind != "recompile" or not finding.message:
        # What recompiles, and for which value, is how its message begins.
        blocks.append(Paragraph(words(Span(finding.title, "strong"))))
    if finding.message:
        blocks.append(Paragraph(prose(finding.message)))
    # A page tells every cause at length further down, with its change once more.
    own = replace(reading.told, places={}, texts={}, folding=False)
    told = own if reading.full else reading.told
    blocks += advice_blocks(finding.advice, told, where, brief=True)
    for failure in reading.digest.failures:
        if finding.kind == "failure" and failure.because == finding.because:
            blocks += repro_words(failure, reading.run.header.cwd)
    at = Span(place(finding.file, finding.line, reading.root), "strong", target)
    inside = f" in {finding.function}" if finding.function else ""
    return Item(str(number), words(at, inside), _cost(finding), tuple(blocks))


def _cost(finding: Finding) -> Words:
    costs = []
    if finding.kind == "recompile":
        costs.append(count(finding.count, "recompile"))
    elif finding.rule_id.startswith("GB"):
        costs.append(finding.rule_id)
    if finding.lost_ms is not None:
        costs.append(f"{finding.lost_ms:.1f} ms outside graphs")
    elif finding.seconds is not None:
        costs.append(duration(finding.seconds * 1e9))
    return words(Span(", ".join(costs), "bad" if finding.level == "error" else "warn"))
