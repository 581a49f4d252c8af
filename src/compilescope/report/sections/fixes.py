"""The fixes that were tried: what each would change, and whether it was proven."""

from __future__ import annotations

from compilescope.model.bodies import FixAttempt
from compilescope.model.event import Event
from compilescope.report.blocks import (
    Block,
    CodeLine,
    Fold,
    Item,
    Pane,
    Panes,
    Paragraph,
    Span,
    Style,
    prose,
    words,
)
from compilescope.report.places import place
from compilescope.report.section import Reading, Section

_STYLES: dict[str, Style] = {"verified": "good", "rejected": "bad", "unverified": "warn"}


def _build(reading: Reading) -> list[Block]:
    found = list(reading.run.of(FixAttempt))
    return [_item(number, body, reading) for number, (_, body) in enumerate(found, 1)]


def _item(number: int, body: FixAttempt, reading: Reading) -> Item:
    style = _STYLES.get(body.verdict, "warn")
    blocks: list[Block] = [Paragraph(words(Span(body.verdict, style), _kept(body)))]
    if body.reason:
        blocks.append(Paragraph(prose(body.reason), "Why:"))
    if body.states:
        blocks.append(Paragraph(prose(body.states), "Changes:"))
    if body.diff:
        lines = tuple(CodeLine(line) for line in body.diff.splitlines())
        blocks.append(Fold(words("the change"), (Panes((Pane("diff", lines),)),)))
    left = words(body.title or body.cause or "no fix")
    return Item(str(number), left, words(_where(body, reading)), tuple(blocks))


def _kept(body: FixAttempt) -> str:
    if body.kept:
        return ", kept"
    return ", not kept" if body.verdict == "verified" else ""


def _where(body: FixAttempt, reading: Reading) -> str:
    event: Event | None = reading.events_by_id.get(body.because)
    site = event.site if event is not None else None
    return place(site.file, site.line, reading.root) if site is not None else body.cause


SECTION = Section("fixes", 27, _build, "Fixes", "what was tried, and what was verified")
