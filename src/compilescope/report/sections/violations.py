"""What a device cannot run, by model and kind."""

from __future__ import annotations

from compilescope.model.bodies import Violation
from compilescope.model.event import Event
from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Item,
    Paragraph,
    Part,
    Span,
    Style,
    Table,
    prose,
    words,
)
from compilescope.report.places import count, place
from compilescope.report.section import Reading, Section
from compilescope.rules.benchmarks import is_benchmark

_Group = dict[tuple[object, ...], list[tuple[Event, Violation]]]


def _build(reading: Reading) -> list[Block]:
    found = list(reading.run.of(Violation))
    if not found:
        return []
    kinds: _Group = {}
    causes: _Group = {}
    for event, body in found:
        site = event.site
        where = (site.file, site.line, site.column) if site else ()
        kinds.setdefault((body.model, body.device, body.rule, body.severity), []).append(
            (event, body)
        )
        key = (body.model, body.device, body.rule, body.op, body.found, body.severity, *where)
        causes.setdefault(key, []).append((event, body))
    rows = tuple(
        (
            words(str(model) or "-"),
            words(str(device)),
            words(str(rule)),
            words(str(severity)),
            words(str(len(members))),
        )
        for (model, device, rule, severity), members in sorted(kinds.items(), key=str)
    )
    table = Table(("model", "device", "constraint", "severity", "violations"), rows, (4,))
    if is_benchmark(reading.run) and not reading.full:
        return [table]  # Of many models: the figures need the room.
    items = [_item(n, members, reading.root) for n, members in enumerate(causes.values(), 1)]
    return [table, *items]


def _item(number: int, members: list[tuple[Event, Violation]], root: str) -> Item:
    event, body = members[0]
    site = event.site
    where = place(site.file, site.line, root) if site else "unknown location"
    blocks: list[Block] = []
    if site and site.source:
        blocks.append(Excerpt(site.source, site.column, site.end_column))
    found = words(
        Span(body.op, "code"), f": found {body.found}; {body.device} allows {body.allowed}"
    )
    blocks.append(Paragraph(found))
    if body.remedy:
        blocks.append(Paragraph(prose(body.remedy), "Try:"))
    times = f"{body.stage} graph, {count(len(members), 'time')}"
    blocks.append(Paragraph(words(Span(times, "dim"))))
    style: Style = "bad" if body.severity == "error" else "warn"
    right = words(Span(f"{body.rule} {body.severity}", style))
    tags = ("kind:violation", f"category:{body.rule}")
    model = f"{body.model}: " if body.model else ""
    return Item(str(number), words(model, Span(where, "strong")), right, tuple(blocks), tags=tags)


def violations_document(title: str, reading: Reading) -> Document:
    """This section alone."""
    nothing = Paragraph(words("No backend recorded a violation in this run."))
    blocks = tuple(_build(reading)) or (nothing,)
    subtitle = " ".join(reading.run.header.command)
    return Document(title, subtitle, (Part(SECTION.id, SECTION.title, blocks),))


SECTION = Section(
    "violations", 25, _build, "Constraint violations", "what a device does not support"
)
