"""The smallest program that shows a cause, as `minify` found it."""

from __future__ import annotations

import os

from compilescope.record.bodies import MinifyOutcome
from compilescope.record.event import Event
from compilescope.report.blocks import (
    Block,
    CodeLine,
    Facts,
    Item,
    Pane,
    Panes,
    Paragraph,
    Span,
    Words,
    note,
    words,
)
from compilescope.report.places import count, place
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading, Section

_STOPPED = {
    "interrupt": "Stopped by Ctrl-C; this is the best so far.",
    "time": "Stopped at the time limit; this is the best so far.",
    "calls": "Stopped at the run limit; this is the best so far.",
}


def _build(reading: Reading) -> list[Block]:
    found = enumerate(reading.run.of(MinifyOutcome), 1)
    return [_item(str(number), event, body, reading) for number, (event, body) in found]


def _item(number: str, event: Event, body: MinifyOutcome, reading: Reading) -> Item:
    site = event.site
    at = place(site.file, site.line, reading.root) if site and site.file else "unknown place"
    blocks: list[Block] = [Paragraph(words(body.cause))]
    blocks.append(Paragraph(_verdict(body)))
    if body.stopped:
        blocks.append(note(_STOPPED[body.stopped]))
    blocks += [note(f"It still imports {name}: {why}.") for name, why in body.needs.items()]
    blocks.append(Facts(tuple(_facts(body))))
    script = reading.run.artifacts.get(body.script) if body.script else None
    if script and (reading.full or reading.page):  # A summary names it.
        lines = tuple(map(CodeLine, script.splitlines()))
        blocks.append(Panes((Pane(os.path.basename(body.path), lines),)))
    right = words(Span(body.predicate, "bad" if body.predicate == "crash" else "warn"))
    return Item(number, words(Span(at, "strong")), right, tuple(blocks))


def _verdict(body: MinifyOutcome) -> Words:
    if not body.path:
        return words(Span(f"No repro: {body.reason}.", "bad"))
    if body.reason:
        told = Span(f"Repro, not verified in a fresh process ({body.reason}): ", "warn")
    else:
        told = Span("Repro, verified in a fresh process: ", "good")
    return words(told, Span(body.path, "code"))


def _facts(body: MinifyOutcome) -> list[tuple[str, Words]]:
    facts = [("size", words(f"{body.size_before} -> {body.size} {body.unit}"))]
    if body.lines is not None:
        facts.append(("lines", words(f"{body.lines_before} -> {body.lines}")))
    reused = f" and {count(body.reused, 'cached result')}" if body.reused else ""
    facts.append(("tried", words(f"{count(body.runs, 'candidate')}{reused}")))
    facts.append(("took", words(duration(body.seconds * 1e9))))
    return facts


SECTION = Section("repro", 28, _build, "Repro", "the smallest program that shows it")
