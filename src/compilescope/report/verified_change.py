"""What `verify` tells of a change: the verdict, what was compared, both versions in figures, and
what was not compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.record.fix_search import (
    ChangedCause,
    ChangeOutcome,
    CountedTwice,
    Spread,
    Times,
    count_label,
)
from compilescope.report.blocks import (
    Block,
    Diff,
    Document,
    Heading,
    Paragraph,
    Part,
    ShownRun,
    Span,
    Style,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.places import place
from compilescope.report.render.spans import duration
from compilescope.report.time_changes import time_change

_STYLES: dict[str, Style] = {
    "verified": "good",
    "changed": "bad",
    "worse": "bad",
    "unknown": "warn",
}
_OF_GATE = {"verified": "PASS", "changed": "FAIL", "worse": "FAIL", "unknown": "INCONCLUSIVE"}
"""As `check` has them."""
_CHECKS: dict[str, Style] = {"fail": "bad", "unknown": "warn"}
_MOST = 20
"""Causes and checks of a list. Chosen: what is read at a glance; JSON has all."""
_MOST_INPUTS = 12
"""Kinds of inputs. Chosen: two lines."""
_TIMES = {"steady": "a warm call", "first": "first calls", "whole": "whole process"}


def change_document(
    outcome: ChangeOutcome,
    *,
    root: str,
    record: ShownRun,
    subtitle: str,
    next: Sequence[tuple[str, str]] = (),
) -> Document:
    parts = [
        Part("verdict" if not title else title.lower().replace(" ", "-"), title, tuple(blocks))
        for title, blocks in change_parts(outcome, root)
    ]
    if next:
        lines = tuple(
            Paragraph(words(f"{label}\n  ", Span(command, "code"))) for label, command in next
        )
        parts.append(Part("next", "Next", lines))
    title = "compilescope verify" if outcome.behavior else "compilescope check"
    return Document(title, subtitle, tuple(parts), root=root, record=record)


def change_blocks(outcome: ChangeOutcome, root: str) -> Iterator[Block]:
    """Under headings, for a report."""
    for title, blocks in change_parts(outcome, root):
        if title:
            yield Heading(title)
        yield from blocks
    if outcome.diff:
        yield Heading("The change")
        yield Diff(outcome.diff)


def change_parts(outcome: ChangeOutcome, root: str) -> Iterator[tuple[str, list[Block]]]:
    """Each with its title; the first has none."""
    head: list[Block] = [Paragraph(change_verdict_words(outcome))]
    failed = [each for each in outcome.checks if each.verdict != "pass"]
    others = [e for e in failed if e.words != outcome.reason and e.name != "causes"]
    for each in others[:_MOST]:
        head.append(
            Paragraph(words(Span(each.name, _CHECKS[each.verdict]), f": {each.words}"), "-")
        )
    yield "", head
    if outcome.new:
        yield "New causes", list(_causes(outcome.new, root))
    compared: list[Block] = [Paragraph(prose(each), "-") for each in outcome.compared]
    if outcome.inputs:
        shown = ", ".join(outcome.inputs[:_MOST_INPUTS])
        more = len(outcome.inputs) - _MOST_INPUTS
        compared.append(note(f"Equal on: {shown}{f' and {more} more' if more > 0 else ''}."))
    if compared:
        yield "Compared", compared
    rows = list(_rows(outcome))
    if rows:
        heads = ("", outcome.before_name, outcome.after_name, "")
        if any(len(name) > _MOST for name in heads):
            heads = ("", "before", "after", "")
        blocks: list[Block] = [Table(heads, tuple(rows), numeric=(1, 2))]
        if outcome.times is not None:
            blocks.append(note(_about_times(outcome.times)))
        yield "Before and after", blocks
    if outcome.gone:
        yield "No longer there", list(_causes(outcome.gone, root))
    if outcome.uncovered:
        yield "Hidden before", list(_causes(outcome.uncovered, root))
    if outcome.not_compared:
        yield "Not compared", [Paragraph(prose(each), "-") for each in outcome.not_compared]


def _about_times(times: Times) -> str:
    """How they were taken, and what is missing."""
    told = "First calls are those that compile, with empty caches"
    told += "" if times.imports else "; the process is told without importing torch"
    missing = f" Some timings are missing: {times.reason}." if times.reason else ""
    return f"{told}. Intervals are from the fastest round to the slowest.{missing}"


def change_verdict_words(outcome: ChangeOutcome) -> Words:
    shown = outcome.verdict.upper() if outcome.behavior else _OF_GATE[outcome.verdict]
    label = Span(shown, _STYLES[outcome.verdict])
    return words(label, ": ", *prose(_told(outcome)))


def _told(outcome: ChangeOutcome) -> str:
    if outcome.verdict != "verified":
        return outcome.reason.rstrip(".") + "."
    if not outcome.behavior:
        same = "no new cause"
        same += ", and no slower call" if outcome.times is not None else ""
    else:
        same = _same(outcome)
    lost = ("breaks", "recompiles", "eager", "failures")
    won = [
        f"{count_label(each.name)} {_range(each.before)} -> {_range(each.after)}"
        for each in outcome.counts
        if each.name in lost and each.after[1] < each.before[0]
    ]
    old = outcome.times.before.steady if outcome.times is not None else None
    new = outcome.times.after.steady if outcome.times is not None else None
    if old is not None and new is not None and new.high < old.low:
        won.append(f"a warm call {_span(old)} -> {_span(new)}")
    if not won and not outcome.behavior:
        return f"{same}."
    return f"{same}; {', '.join(won) if won else 'nothing was won'}."


def _same(outcome: ChangeOutcome) -> str:
    if outcome.inputs:
        return "the same results and output"
    return "the same output and exit status"


def _causes(causes: Sequence[ChangedCause], root: str) -> Iterator[Block]:
    for each in causes[:_MOST]:
        at = place(each.file, each.line, root) if each.file else "the program"
        why = f"; {each.why}" if each.why else ""
        source = words(" ", Span(each.source, "code")) if each.source else ()
        told = f" {each.title} ({each.rule}){why}" if each.rule else f" {each.title}{why}"
        yield Paragraph(words(Span(at, "strong"), told, *source), "-")
    if len(causes) > _MOST:
        yield note(f"and {len(causes) - _MOST} more")


def _rows(outcome: ChangeOutcome) -> Iterator[tuple[Words, ...]]:
    for each in outcome.counts:
        if each.before[1] or each.after[1]:
            label = count_label(each.name).removesuffix(" captured")
            yield _row(label, _range(each.before), _range(each.after), *_moved(each))
    old, new = outcome.share
    if old is not None or new is not None:
        yield _row("run eagerly", _percent(old), _percent(new))
    if outcome.times is None:
        return
    for name, label in _TIMES.items():
        was, now = (getattr(side, name) for side in (outcome.times.before, outcome.times.after))
        if was is not None or now is not None:
            told = words(Span(*time_change(was, now)))
            yield words(label), _interval(was), _interval(now), told


def _row(
    label: str, old: str, new: str, told: str = "", style: Style = "plain"
) -> tuple[Words, ...]:
    return words(label), words(old), words(new), words(Span(told, style))


def _moved(counted: CountedTwice) -> tuple[str, Style]:
    """More graphs or operators are neither good nor bad."""
    if counted.name in ("graphs", "operators"):
        return "", "plain"
    if counted.after[0] > counted.before[1]:
        return "more", "bad"
    return ("fewer", "good") if counted.after[1] < counted.before[0] else ("", "plain")


def _range(ends: tuple[int, int]) -> str:
    return str(ends[0]) if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{share:.0%}"


def _span(spread: Spread | None) -> str:
    return "?" if spread is None else duration(spread.median * 1e9)


def _interval(spread: Spread | None) -> Words:
    """The median, and below it all rounds."""
    if spread is None or spread.low == spread.high:
        return words(_span(spread))
    ends = " to ".join(duration(seconds * 1e9) for seconds in (spread.low, spread.high))
    return words(_span(spread), Span(f"\n({ends})", "dim"))
