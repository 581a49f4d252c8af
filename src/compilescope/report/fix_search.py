"""What `fix` tells: each cause with its fix and verdict, the changes, and what was won by them.

Also the list of all fixes: what each is for, and whether a program behaves differently after it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from compilescope.record.fix_search import (
    FixAttempt,
    FixLeft,
    Placement,
    Spread,
    UncoveredBreak,
)
from compilescope.report.blocks import (
    Block,
    Diff,
    Document,
    Excerpt,
    Item,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.placements import PLACEMENTS, VERDICT_STYLES, placement_blocks
from compilescope.report.places import count, place
from compilescope.report.render.spans import duration
from compilescope.report.time_changes import time_change

# Chosen: what is read at a glance; the rest is counted.
_MOST_LEFT = 30
_MOST_CAUSES = 4
_MOST_OTHERS = 2
_MOST_PLACE = 20
_MOST_REASON = 140
"""Letters. Chosen: a place keeps its file and line, a reason its first sentence."""


_Row = list[FixAttempt]
"""Attempts that come to the same edit, on one finding or on several; never empty."""


class FixFigure(msgspec.Struct, frozen=True):
    """Something that was counted or timed before and after; None where it could not be."""

    label: str
    before: int | Spread | None
    after: int | Spread | None


class FixSearchView(msgspec.Struct, frozen=True, kw_only=True):
    """A search for fixes, as a user is told of it."""

    title: str
    subtitle: str
    headline: tuple[tuple[str, Style], ...]
    attempts: tuple[FixAttempt, ...] = ()
    root: str = ""
    """The folder that places are told from."""
    figures: tuple[FixFigure, ...] = ()
    untimed: str = ""
    """Why something could not be timed."""
    diff: str = ""
    notes: tuple[str, ...] = ()
    left: tuple[FixLeft, ...] = ()
    uncovered: tuple[UncoveredBreak, ...] = ()
    placements: tuple[Placement, ...] = ()
    next: tuple[tuple[str, str], ...] = ()
    """(what for, the command)."""


UNCOVERED = "Graph breaks that were hidden before"


def how_proven(kept: Sequence[FixAttempt]) -> str:
    """Of several fixes. Where two guards fail at once, the fix of one alone gains nothing."""
    alone = all(
        each.finding != "recompile"
        or each.recompiles_after is None
        or each.recompiles_after < each.recompiles_before
        for each in kept
    )
    return "individually and together" if alone else "together"


def uncovered_blocks(uncovered: Sequence[UncoveredBreak], root: str) -> Iterator[Block]:
    """Each break that the program had not shown, and what hid it."""
    for each in uncovered:
        at = Span(place(each.file, each.line, root), "strong")
        why = each.why or "why it was not seen before is unknown"
        yield Paragraph(words(at, " ", *prose(_sentence(f"{each.cause}: {why}"))), "-")


def fixing_document(fixing: FixSearchView) -> Document:
    rows = _rows(fixing.attempts)
    head: list[Block] = [Paragraph(words(Span(text, style))) for text, style in fixing.headline]
    head += _paid(fixing)
    head += [note(text) for text in fixing.notes]
    if rows:
        head.append(_table(rows))
    parts = [Part("verdict", "", tuple(head))]
    inputs = dict.fromkeys(words for row in rows if row[0].kept for words in row[0].inputs)
    if inputs:
        parts.append(Part("inputs", "Compared with the original on", (note(", ".join(inputs)),)))
    theirs = [row[0] for row in rows if row[0].kept and row[0].by]
    if theirs:
        told_by = tuple(block for each in theirs for block in _model_blocks(each))
        parts.append(Part("model", "Written by a language model", told_by))
    stated = [row[0] for row in rows if row[0].kept and row[0].states]
    if stated:
        parts.append(Part("states", "Changes you may notice", tuple(map(_stated, stated))))
    unused = [row for row in rows if not row[0].kept]
    if unused:
        told_of: set[tuple[str, str]] = set()
        items = (_open_item(n, row, fixing.root, told_of) for n, row in enumerate(unused, 1))
        parts.append(Part("open", "Not used, and why", tuple(items)))
    if fixing.placements:
        placed = tuple(placement_blocks(fixing.placements))
        parts.append(Part("placements", PLACEMENTS, placed))
    if fixing.diff:
        parts.append(Part("diff", "Changes", (note(""), Diff(fixing.diff))))
    if fixing.figures:
        untimed = (note(f"Some timings are missing: {fixing.untimed}."),) if fixing.untimed else ()
        parts.append(Part("figures", "Before and after", (_figures(fixing.figures), *untimed)))
    told = {(_place(each, fixing.root), _reason(row[0])) for row in unused for each in row}
    left = [(_left_place(each, fixing.root), clause(each.why)) for each in fixing.left]
    left = [each for each in left if each not in told]
    if left:
        parts.append(Part("left", "Not fixed", tuple(_left(left))))
    if fixing.uncovered:
        found = tuple(uncovered_blocks(fixing.uncovered, fixing.root))
        parts.append(Part("uncovered", UNCOVERED, found))
    if fixing.next:
        blocks = tuple(_command(label, text) for label, text in fixing.next)
        parts.append(Part("next", "Next", blocks))
    return Document(fixing.title, fixing.subtitle, tuple(parts))


def _rows(attempts: Iterable[FixAttempt]) -> list[_Row]:
    """In the order of the attempts."""
    rows: dict[object, _Row] = {}
    for each in attempts:
        rows.setdefault(_sameness(each), []).append(each)
    return list(rows.values())


def _sameness(attempt: FixAttempt) -> object:
    common = (attempt.fix, attempt.verdict, attempt.kept, attempt.round)
    if attempt.fix:
        return (*common, attempt.diff)
    # Nothing fits: told once for all causes of a kind that it is told of in the same words.
    return (*common, attempt.rule, clause(attempt.reason))


def clause(reason: str) -> str:
    """The first thing that matters; --json has all of it."""
    text = " ".join(reason.split())
    first = text.partition("; ")[0]
    if len(first) <= _MOST_REASON:
        return first
    cut = first[:_MOST_REASON].rpartition(" ")[0] or first[:_MOST_REASON]
    return cut.rstrip(",:") + " …"


def _reason(attempt: FixAttempt) -> str:
    """Why it was not used; of one that is used, what it changes is said elsewhere."""
    return "" if attempt.kept and attempt.reason == attempt.states else clause(attempt.reason)


def _place(attempt: FixAttempt, root: str) -> str:
    return place(attempt.file, attempt.line, root)


def _short_place(attempt: FixAttempt) -> str:
    at = f"{os.path.basename(attempt.file)}:{attempt.line}"
    return at if len(at) <= _MOST_PLACE else "…" + at[1 - _MOST_PLACE :]


def _was_tried(attempt: FixAttempt) -> bool:
    """Was there time to try anything?"""
    return bool(attempt.fix) or not attempt.reason.startswith("not tried")


def _ending(attempt: FixAttempt) -> str:
    """In a word, how that version ended where the original does not."""
    for check in attempt.checks:
        if check.name == "exit" and check.verdict == "fail":
            if check.words.startswith("it crashes"):
                return "crashes"
            return "times out" if "did not finish" in check.words else "exits differently"
    return ""


def _table(rows: list[_Row]) -> Table:
    firsts = [row[0] for row in rows]
    again = any(each.recompiles_before or each.recompiles_after for each in firsts)
    timed = any(_warm_call(each) is not None for each in firsts)
    cells = []
    for row in rows:
        first = row[0]
        fix = words(_fix(first) or Span("none" if _was_tried(first) else "", "dim"))
        verdict = _verdict(first)
        left_out = first.verdict == "verified" and not first.kept
        remark = "left out" if left_out else _ending(first)
        shown = words(verdict, Span(f"\n{remark}", "dim")) if remark else words(verdict)
        line = [tuple(_causes(row)), fix, shown]
        line.append(words(_arrow(first.breaks_before, first.breaks_after)))
        line += [words(_arrow(first.recompiles_before, first.recompiles_after))] if again else []
        line += [words(_times(_warm_call(first)))] if timed else []
        cells.append(tuple(line))
    columns = ["cause", "fix", "verdict", "breaks"]
    columns += ["recomp."] * again + ["a warm call"] * timed
    return Table(tuple(columns), tuple(cells), numeric=tuple(range(3, len(columns))))


def _causes(row: _Row) -> Iterator[Span]:
    """Each name once, with the places below it."""
    named = ""
    for number, each in enumerate(row[:_MOST_CAUSES]):
        name = each.rule or each.cause
        if name != named:
            yield Span(f"\n{name}" if number else name)
        named = name
        yield Span(f"\n  {_short_place(each)}", "dim")
    if len(row) > _MOST_CAUSES:
        yield Span(f"\n  and {len(row) - _MOST_CAUSES} more", "dim")


def _fix(attempt: FixAttempt) -> str:
    """What it does, in a few words; empty where none fits."""
    return attempt.title or attempt.fix


def _warm_call(attempt: FixAttempt) -> tuple[float, float] | None:
    return attempt.times.warm_call if attempt.times is not None else None


def _times(seconds: tuple[float, float] | None) -> str:
    if seconds is None:
        return ""
    before, after = (duration(each * 1e9) for each in seconds)
    return f"{before} -> {after}"


def _arrow(before: int, after: int | None) -> str:
    return f"{before} -> {after}" if after is not None else "-"


def _model_blocks(attempt: FixAttempt) -> Iterator[Block]:
    """Whose it is, and what the verdict on it rests on."""
    at = Span(_short_place(attempt), "strong")
    told = "read it before you use it: it was verified on what is listed here, and no more"
    yield Paragraph(words(at, f" {attempt.by} wrote this patch; {told}."))
    for text in attempt.compared:
        yield Paragraph(words(*prose(_sentence(f"compared: {text}"))), "-")
    for text in attempt.notes:
        told = _sentence(f"not compared: {text[:1].lower()}{text[1:]}")
        yield Paragraph(words(*prose(told)), "-")


def _stated(attempt: FixAttempt) -> Paragraph:
    return Paragraph(words(Span(_short_place(attempt), "strong"), " ", *prose(attempt.states)), "-")


def _open_item(number: int, row: _Row, root: str, told: set[tuple[str, str]]) -> Item:
    first = row[0]
    blocks: list[Block] = []
    if first.source:
        blocks.append(Excerpt(first.source))
    fix, reason = _fix(first), _reason(first)
    if reason:
        head = words(Span(fix, "strong"), ": ") if fix else ()
        blocks.append(Paragraph((*head, *prose(_sentence(reason)))))
    elif fix:
        blocks.append(Paragraph(words(Span(fix, "strong"))))
    blocks += _also(row, root)
    blocks += _others(first, root, told)
    where = f" in {first.function}" if first.function else ""
    left = words(Span(_place(first, root), "strong"), where)
    return Item(str(number), left, words(_verdict(first)), tuple(blocks))


def _verdict(attempt: FixAttempt) -> Span:
    """Of a fix; where none fits, nothing was judged."""
    if _fix(attempt):
        return Span(attempt.verdict, VERDICT_STYLES[attempt.verdict])
    return Span("no fix" if _was_tried(attempt) else "not tried", "warn")


def _also(row: _Row, root: str) -> list[Block]:
    places = list(dict.fromkeys(_place(each, root) for each in row[1:]))
    if not places:
        return []
    more = f" and {len(places) - _MOST_CAUSES} more" if len(places) > _MOST_CAUSES else ""
    return [note(f"also {', '.join(places[:_MOST_CAUSES])}{more}")]


def _others(attempt: FixAttempt, root: str, told: set[tuple[str, str]]) -> list[Block]:
    """Why the next best ones do not fit, once for each cause; the best one's reason is the row's
    own."""
    at, reason = _place(attempt, root), _reason(attempt)
    found = [
        (name, clause(why))
        for name, why in attempt.refused
        if clause(why) not in ("", reason) and (at, name) not in told
    ]
    told.update((at, name) for name, _ in attempt.refused)
    blocks: list[Block] = [note(f"{name}: {why}") for name, why in found[:_MOST_OTHERS]]
    if len(found) > _MOST_OTHERS:
        rest = count(len(found) - _MOST_OTHERS, "more fix", "more fixes")
        blocks.append(note(f"and {rest}; --json has the reasons"))
    return blocks


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", ".)")) else ".")


def _figures(figures: tuple[FixFigure, ...]) -> Table:
    rows = []
    for figure in figures:
        remark, style = _remark(figure)
        cells = (words(figure.label), words(_shown(figure.before)), words(_shown(figure.after)))
        rows.append((*cells, words(Span(remark, style))))
    return Table(("", "before", "after", ""), tuple(rows), numeric=(1, 2))


def _shown(value: int | Spread | None) -> str:
    if value is None:
        return "?"
    return duration(value.median * 1e9) if isinstance(value, Spread) else str(value)


def _remark(figure: FixFigure) -> tuple[str, Style]:
    """Of times only."""
    old, new = figure.before, figure.after
    if not (isinstance(old, Spread) and isinstance(new, Spread)):
        return "", "plain"
    return time_change(old, new)


def _paid(fixing: FixSearchView) -> list[Block]:
    """Did it pay? Said plainly, also where it did not."""
    said: list[Block] = []
    for figure in fixing.figures:
        remark, style = _remark(figure)
        if remark and (not said or style == "bad"):
            times = f"{_shown(figure.before)} -> {_shown(figure.after)}"
            label = figure.label[0].upper() + figure.label[1:]
            said.append(Paragraph(words(f"{label}: {times}, ", Span(f"{remark}.", style))))
    return said


def _left_place(left: FixLeft, root: str) -> str:
    file, _, line = left.place.rpartition(":")
    return place(file, int(line), root) if file and line.isdecimal() else left.place


def _left(left: Sequence[tuple[str, str]]) -> list[Block]:
    blocks: list[Block] = []
    for at, why in left[:_MOST_LEFT]:
        blocks.append(Paragraph(words(Span(at, "strong"), " ", *prose(_sentence(why))), "-"))
    if len(left) > _MOST_LEFT:
        blocks.append(note(f"and {count(len(left) - _MOST_LEFT, 'more cause')}"))
    return blocks


def _command(label: str, command: str) -> Paragraph:
    return Paragraph(words(f"{label}\n  ", Span(command, "code")))


class FixLine(msgspec.Struct, frozen=True, kw_only=True):
    """One fix of the repertoire."""

    id: str
    title: str
    rules: tuple[str, ...]
    kind: str
    safe: bool
    why: str


def repertoire_document(fixes: tuple[FixLine, ...]) -> Document:
    blocks: list[Block] = []
    for number, fix in enumerate(fixes, 1):
        told: Words = words(Span("safe", "good") if fix.safe else Span("visible change", "warn"))
        if fix.kind == "scaffold":
            told = words(Span("finish by hand", "warn"))
        inside: list[Block] = [note("for " + ", ".join(fix.rules))]
        if not fix.safe:
            inside.append(Paragraph(prose(fix.why)))
        left = words(Span(fix.id, "strong"), f"  {fix.title}")
        blocks.append(Item(str(number), left, told, tuple(inside)))
    subtitle = f"{count(len(fixes), 'fix', 'fixes')}, in the order they are tried"
    return Document("What compilescope can fix", subtitle, (Part("fixes", "", tuple(blocks)),))
