"""What a search for fixes came to: the verified changes, and each fix that was tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from compilescope.change.fixes.stored import StoredFix, stored_fix
from compilescope.record.bodies import FixAttempt
from compilescope.record.event import Event
from compilescope.record.fix_search import COUNTS, in_counts
from compilescope.report.blocks import (
    Block,
    Diff,
    Fold,
    Heading,
    Item,
    Paragraph,
    Span,
    Style,
    Table,
    note,
    prose,
    words,
)
from compilescope.report.fix_search import (
    UNCOVERED,
    how_proven,
    uncovered_blocks,
)
from compilescope.report.placements import PLACEMENTS, placement_blocks
from compilescope.report.places import place
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading, Section

_STYLES: dict[str, Style] = {"verified": "good", "rejected": "bad", "unverified": "warn"}
_MOST_LEFT = 30
"""Causes that no fix was found for. Chosen: as many as `fix` itself prints."""


def _build(reading: Reading) -> list[Block]:
    fix = stored_fix(reading.run)
    found = [body for _, body in reading.run.of(FixAttempt)]
    tried = attempt_blocks(found, fix.diff if fix else "", lambda body: _where(body, reading))
    return [*(outcome_blocks(fix, found, reading.root) if fix is not None else ()), *tried]


def outcome_blocks(fix: StoredFix, attempts: list[FixAttempt], root: str) -> Iterator[Block]:
    """All that was kept, together: what it wins, and the changes."""
    found = fix.outcome
    yield Paragraph(words(Span(*verdict_of(fix, attempts))))
    for text in found.notes:
        yield note(text)
    if found.verdict == "verified":
        yield _figures(fix)
    if found.environment:
        setting = " ".join(f"{name}={value}" for name, value in found.environment.items())
        yield Paragraph(words("Start the program with ", Span(setting, "code"), "."))
    if not fix.whole:
        yield note("The changes are missing from this run, redacted or damaged.")
    elif fix.diff:
        yield Heading("Changes")
        yield Diff(fix.diff)
    if found.placements:
        yield Heading(PLACEMENTS)
        yield from placement_blocks(found.placements)
    if found.uncovered:
        yield Heading(UNCOVERED)
        yield from uncovered_blocks(found.uncovered, root)
    if found.left:
        left = found.left[:_MOST_LEFT]
        rows = tuple((words(Span(each.place, "code")), words(each.why)) for each in left)
        more = len(found.left) - len(left)
        yield Fold(
            words(f"Not fixed: {len(found.left)}"),
            (Table(("place", "why"), rows), *([note(f"and {more} more")] if more else ())),
        )


def verdict_of(fix: StoredFix, attempts: list[FixAttempt]) -> tuple[str, Style]:
    """In one sentence."""
    found = fix.outcome
    if found.verdict == "verified":
        kept = [each for each in attempts if each.kept]
        number = len({(each.fix, each.diff) for each in kept})
        how = f"{number} fixes verified, {how_proven(kept)}" if number > 1 else "Verified"
        counts = in_counts(found.before, found.after, found.uncovered)
        return f"{how}: {counts}." if counts else f"{how}.", "good"
    if not found.before.anything:
        return "Nothing to fix.", "good"
    return f"No fix could be verified{f': {found.reason}' if found.reason else ''}.", "bad"


def _figures(fix: StoredFix) -> Table:
    found = fix.outcome
    rows = [
        (words(label), words(str(old)), words(str(new)))
        for name, label in COUNTS.items()
        if (old := getattr(found.before, name)) + (new := getattr(found.after, name))
    ]
    if found.warm_call is not None:
        old, new = (words(duration(seconds * 1e9)) for seconds in found.warm_call)
        rows.append((words("a warm call"), old, new))
    return Table(("", "before", "after"), tuple(rows), numeric=(1, 2))


def attempt_blocks(
    attempts: Sequence[FixAttempt], shown: str, where: Callable[[FixAttempt], str] | None = None
) -> list[Block]:
    """Each that was tried, with its verdict. `shown`: the diff that stands above them; `where`: the
    place of a cause."""
    return [
        _item(number, body, shown, where(body) if where is not None else _cause(body))
        for number, body in enumerate(attempts, 1)
    ]


def _cause(body: FixAttempt) -> str:
    return body.cause if body.title else ""


def _item(number: int, body: FixAttempt, shown: str, where: str) -> Item:
    style = _STYLES.get(body.verdict, "warn")
    blocks: list[Block] = [Paragraph(words(Span(body.verdict, style), _kept(body)))]
    if body.reason:
        blocks.append(Paragraph(prose(body.reason), "Why:"))
    if body.states:
        blocks.append(Paragraph(prose(body.states), "Changes:"))
    if body.by:
        blocks.append(Paragraph(words(body.by, ", a language model"), "Written by:"))
    if body.compared:
        blocks.append(Paragraph(prose("; ".join(body.compared)), "Compared:"))
    if body.inputs:
        blocks.append(Paragraph(prose(", ".join(body.inputs)), "Compared on:"))
    if body.notes:
        blocks.append(Paragraph(prose("; ".join(body.notes)), "Not covered:"))
    if body.diff and body.diff != shown:
        blocks.append(Fold(words("the change"), (Diff(body.diff),)))
    left = words(body.title or body.cause or "no fix")
    return Item(str(number), left, words(where), tuple(blocks))


def _kept(body: FixAttempt) -> str:
    if body.kept:
        return ", kept"
    return ", not kept" if body.verdict == "verified" else ""


def _where(body: FixAttempt, reading: Reading) -> str:
    event: Event | None = reading.events_by_id.get(body.because)
    site = event.site if event is not None else None
    return place(site.file, site.line, reading.root) if site is not None else body.cause


SECTION = Section("fixes", 27, _build, "Fixes", "what was tried, and what was verified")
