"""What `fix` tells: each cause with its fix and verdict, the changes, and what was won by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

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
    note,
    prose,
    words,
)
from compilescope.report.places import count
from compilescope.report.render.spans import duration

_VERDICTS: dict[str, Style] = {"verified": "good", "rejected": "bad", "unverified": "warn"}
_MOST_LEFT = 30
_MOST_CAUSES = 4
_MOST_OTHERS = 2
_ENOUGH = 0.02


class FixCause(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is lost."""

    name: str
    """The rule's id."""
    place: str
    """In full."""
    short_place: str
    function: str = ""
    source: str = ""


class FixLine(msgspec.Struct, frozen=True, kw_only=True):
    """One fix that was tried: one edit, however many causes it is for."""

    causes: tuple[FixCause, ...]
    fix: str = ""
    """What it does, in a few words; empty where none fits."""
    verdict: str
    kept: bool = False
    tried: bool = True
    """Was there time to try anything?"""
    ending: str = ""
    """How that version ended, where the original ends otherwise: `crashes`."""
    reason: str = ""
    states: str = ""
    breaks: tuple[int, int | None] = (0, None)
    """Before and after; None where it never ran to its end."""
    recompiles: tuple[int, int | None] = (0, None)
    warm_call: tuple[float, float] | None = None
    """Seconds of a warm call before and after, by this fix alone; None where not timed."""
    others: tuple[tuple[str, str], ...] = ()
    """Fixes that did not fit, and why."""


class Spread(msgspec.Struct, frozen=True):
    """Seconds: the median of some rounds, and how far they lie apart."""

    median: float
    low: float
    high: float


class Figure(msgspec.Struct, frozen=True):
    """Something that was counted or timed before and after; None where it could not be."""

    label: str
    before: int | Spread | None
    after: int | Spread | None


class Fixing(msgspec.Struct, frozen=True, kw_only=True):
    """All that a user is told."""

    title: str
    subtitle: str
    headline: tuple[tuple[str, Style], ...]
    lines: tuple[FixLine, ...] = ()
    figures: tuple[Figure, ...] = ()
    untimed: str = ""
    """Why something could not be timed."""
    diff: str = ""
    notes: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    next: tuple[tuple[str, str], ...] = ()
    """(what for, the command)."""


COUNTS = {
    "breaks": "graph breaks",
    "recompiles": "recompiles",
    "eager": "eager fallbacks",
    "failures": "failed compilations",
    "graphs": "graphs",
    "operators": "operators captured",
}


def in_counts(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """What is lost, before and after, where there is any: `graph breaks 2 -> 0`."""
    names = ("breaks", "recompiles", "failures")
    found = ((COUNTS[name], before.get(name, 0), after.get(name, 0)) for name in names)
    return ", ".join(f"{label} {old} -> {new}" for label, old, new in found if old or new)


def fixing_document(fixing: Fixing) -> Document:
    lines = fixing.lines
    head: list[Block] = [Paragraph(words(Span(text, style))) for text, style in fixing.headline]
    head += _paid(fixing)
    head += [note(text) for text in fixing.notes]
    if lines:
        head.append(_table(lines))
    parts = [Part("verdict", "", tuple(head))]
    stated = [line for line in lines if line.kept and line.states]
    if stated:
        parts.append(Part("states", "Changes you may notice", tuple(map(_stated, stated))))
    open_lines = [line for line in lines if not line.kept]
    if open_lines:
        told_of: set[tuple[str, str]] = set()
        items = tuple(_open_item(n, line, told_of) for n, line in enumerate(open_lines, 1))
        parts.append(Part("open", "Not used, and why", items))
    if fixing.diff:
        parts.append(Part("diff", "Changes", (note(""), Diff(fixing.diff))))
    if fixing.figures:
        untimed = (note(f"Some timings are missing: {fixing.untimed}."),) if fixing.untimed else ()
        parts.append(Part("figures", "Before and after", (_figures(fixing.figures), *untimed)))
    told = {(cause.place, line.reason) for line in open_lines for cause in line.causes}
    left = tuple(each for each in fixing.left if each not in told)
    if left:
        parts.append(Part("left", "Not fixed", tuple(_left(left))))
    if fixing.next:
        blocks = tuple(_command(label, text) for label, text in fixing.next)
        parts.append(Part("next", "Next", blocks))
    return Document(fixing.title, fixing.subtitle, tuple(parts))


def _table(lines: tuple[FixLine, ...]) -> Table:
    again = any(before or after for before, after in (line.recompiles for line in lines))
    timed = any(line.warm_call is not None for line in lines)
    rows = []
    for line in lines:
        fix = words(line.fix or Span("none" if line.tried else "", "dim"))
        verdict = _verdict(line)
        left_out = line.verdict == "verified" and not line.kept
        remark = "left out" if left_out else line.ending
        shown = words(verdict, Span(f"\n{remark}", "dim")) if remark else words(verdict)
        row = [tuple(_causes(line)), fix, shown, words(_arrow(line.breaks))]
        row += [words(_arrow(line.recompiles))] if again else []
        row += [words(_times(line.warm_call))] if timed else []
        rows.append(tuple(row))
    columns = ["cause", "fix", "verdict", "breaks"]
    columns += ["recomp."] * again + ["a warm call"] * timed
    return Table(tuple(columns), tuple(rows), numeric=tuple(range(3, len(columns))))


def _causes(line: FixLine) -> Iterator[Span]:
    """Each name once, with the places below it."""
    named = ""
    for number, cause in enumerate(line.causes[:_MOST_CAUSES]):
        if cause.name != named:
            yield Span(f"\n{cause.name}" if number else cause.name)
        named = cause.name
        yield Span(f"\n  {cause.short_place}", "dim")
    if len(line.causes) > _MOST_CAUSES:
        yield Span(f"\n  and {len(line.causes) - _MOST_CAUSES} more", "dim")


def _times(seconds: tuple[float, float] | None) -> str:
    if seconds is None:
        return ""
    before, after = (duration(each * 1e9) for each in seconds)
    return f"{before} -> {after}"


def _arrow(pair: tuple[int, int | None]) -> str:
    before, after = pair
    return f"{before} -> {after}" if after is not None else "-"


def _stated(line: FixLine) -> Paragraph:
    return Paragraph(
        words(Span(line.causes[0].short_place, "strong"), " ", *prose(line.states)), "-"
    )


def _open_item(number: int, line: FixLine, told: set[tuple[str, str]]) -> Item:
    first = line.causes[0]
    blocks: list[Block] = []
    if first.source:
        blocks.append(Excerpt(first.source))
    head = words(Span(line.fix, "strong"), ": ") if line.fix else ()
    blocks.append(Paragraph((*head, *prose(_sentence(line.reason)))))
    blocks += _also(line)
    blocks += _others(line, told)
    where = f" in {first.function}" if first.function else ""
    left = words(Span(first.place, "strong"), where)
    return Item(str(number), left, words(_verdict(line)), tuple(blocks))


def _verdict(line: FixLine) -> Span:
    """Of a fix; where none fits, nothing was judged."""
    if line.fix:
        return Span(line.verdict, _VERDICTS[line.verdict])
    return Span("no fix" if line.tried else "not tried", "warn")


def _also(line: FixLine) -> list[Block]:
    places = list(dict.fromkeys(cause.place for cause in line.causes[1:]))
    if not places:
        return []
    more = f" and {len(places) - _MOST_CAUSES} more" if len(places) > _MOST_CAUSES else ""
    return [note(f"also {', '.join(places[:_MOST_CAUSES])}{more}")]


def _others(line: FixLine, told: set[tuple[str, str]]) -> list[Block]:
    """Why the next best ones do not fit, once for each cause; the best one's reason is the line's
    own."""
    at = line.causes[0].place
    found = [
        (name, why)
        for name, why in line.others
        if why and why != line.reason and (at, name) not in told
    ]
    told.update((at, name) for name, _ in line.others)
    blocks: list[Block] = [note(f"{name}: {why}") for name, why in found[:_MOST_OTHERS]]
    if len(found) > _MOST_OTHERS:
        rest = count(len(found) - _MOST_OTHERS, "more fix", "more fixes")
        blocks.append(note(f"and {rest}; --json has the reasons"))
    return blocks


def _sentence(text: str) -> str:
    text = text.strip() or "no reason is known"
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?", ".)")) else ".")


def _figures(figures: tuple[Figure, ...]) -> Table:
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


def _remark(figure: Figure) -> tuple[str, Style]:
    """Of times only: faster or slower, beyond what the rounds differ by."""
    old, new = figure.before, figure.after
    if not (isinstance(old, Spread) and isinstance(new, Spread)) or old.median <= 0:
        return "", "plain"
    apart = new.median / old.median - 1
    if new.low > old.high and apart > _ENOUGH:
        return f"{apart:.0%} slower", "bad"
    if new.high < old.low and apart < -_ENOUGH:
        return f"{-apart:.0%} faster", "good"
    return "no clear difference", "dim"


def _paid(fixing: Fixing) -> list[Block]:
    """Did it pay? Said plainly, also where it did not."""
    said: list[Block] = []
    for figure in fixing.figures:
        remark, style = _remark(figure)
        if remark and (not said or style == "bad"):
            times = f"{_shown(figure.before)} -> {_shown(figure.after)}"
            label = figure.label[0].upper() + figure.label[1:]
            said.append(Paragraph(words(f"{label}: {times}, ", Span(f"{remark}.", style))))
    return said


def _left(left: tuple[tuple[str, str], ...]) -> list[Block]:
    blocks: list[Block] = []
    for place, why in left[:_MOST_LEFT]:
        blocks.append(Paragraph(words(Span(place, "strong"), " ", *prose(_sentence(why))), "-"))
    if len(left) > _MOST_LEFT:
        blocks.append(note(f"and {count(len(left) - _MOST_LEFT, 'more cause')}"))
    return blocks


def _command(label: str, command: str) -> Paragraph:
    return Paragraph(words(f"{label}\n  ", Span(command, "code")))
