"""Two sweeps side by side: causes that came and went by job, and states that changed."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.analysis.sweeps import CauseOfJob, Regressions, StateChange
from compilescope.report.blocks import (
    Block,
    Document,
    Paragraph,
    Part,
    Span,
    Table,
    Words,
    note,
    words,
)
from compilescope.report.places import count, first_line, place

_MOST = 200
"""Chosen: more than people read; the rest is counted."""


def changes_document(seen: Regressions, root: str) -> Document:
    before, after = (torch or "?" for torch in seen.torch)
    torch = f"torch {before}" if before == after else f"torch {before} -> {after}"
    title = f"compilescope compare {seen.before} {seen.after}"
    return Document(title, torch, tuple(changes_parts(seen, root)), root=root)


def changes_parts(seen: Regressions, root: str) -> list[Part]:
    summary: list[Block] = [Paragraph(changes_verdict(seen))]
    if seen.unknown:
        unknown = count(len(seen.unknown), "job")
        summary.append(
            note(f"Not compared: {unknown} that one of the sweeps did not run to the end.")
        )
    for names, only in ((seen.added, seen.after), (seen.removed, seen.before)):
        if names:
            summary.append(note(f"Only in {only}: {', '.join(names[:20])}{_rest(names)}."))
    parts = [Part("changes", "Changes", tuple(summary), f"since {seen.before}")]
    if seen.states:
        parts.append(Part("states", "State changed", (_states(seen.states),)))
    for title, remark, found in (
        ("New", "not in the earlier sweep", seen.new),
        ("Gone", "not in the later sweep", seen.gone),
    ):
        if found:
            blocks = _causes(found, root)
            parts.append(Part(title.lower(), title, tuple(blocks), remark))
    return parts


def _rest(names: Sequence[str]) -> str:
    return f" and {len(names) - 20} more" if len(names) > 20 else ""


def changes_verdict(seen: Regressions) -> Words:
    if seen.equal:
        return words(Span(f"Both sweeps have the same causes: {seen.same}.", "good"))
    worse = sum(change.worse for change in seen.states)
    told = [Span(f"{count(len(seen.new), 'new cause')}", "bad" if seen.new else "good")]
    if worse:
        told.append(Span(f"{count(worse, 'job')} no longer ok", "bad"))
    if len(seen.states) > worse:
        told.append(Span(f"{count(len(seen.states) - worse, 'other state')} changed"))
    told.append(Span(f"{len(seen.gone)} no longer present", "good" if seen.gone else "plain"))
    told.append(Span(f"{seen.same} unchanged"))
    spans: list[str | Span] = []
    for number, span in enumerate(told):
        spans += [", "] if number else []
        spans.append(span)
    return words(*spans, ".")


def _states(changes: Sequence[StateChange]) -> Table:
    rows = tuple(
        (
            words(change.job),
            words(change.before),
            words(Span(change.after, "bad" if change.worse else "plain")),
            words(first_line(change.reason)),
        )
        for change in sorted(changes, key=lambda change: not change.worse)
    )
    return Table(("job", "before", "after", "reason"), rows)


def _causes(found: Sequence[CauseOfJob], root: str) -> list[Block]:
    rows = tuple(
        (
            words(each.job),
            words(each.cause.rule),
            words(first_line(each.cause.title)),
            words(place(each.cause.file, each.cause.line, root) if each.cause.file else "-"),
        )
        for each in found[:_MOST]
    )
    table = Table(("job", "rule", "cause", "place"), rows)
    rest = len(found) - _MOST
    return [table, *([note(f"and {rest} more; see --json")] if rest > 0 else [])]
