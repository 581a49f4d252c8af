"""What a device cannot run, by model and kind."""

from __future__ import annotations

from collections.abc import Mapping

from compilescope.analysis.benchmarks import is_benchmark
from compilescope.analysis.violations import repros_by_event
from compilescope.model.bodies import ReproWritten, Violation
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
from compilescope.report.places import count, place, repro_place
from compilescope.report.section import Reading, Section

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
    written = repros_by_event(reading.run)
    items = [_item(n, members, reading, written) for n, members in enumerate(causes.values(), 1)]
    return [table, *items]


def _item(
    number: int,
    members: list[tuple[Event, Violation]],
    reading: Reading,
    written: Mapping[str, ReproWritten],
) -> Item:
    event, body = members[0]
    site = event.site
    where = place(site.file, site.line, reading.root) if site else "unknown location"
    blocks: list[Block] = []
    if site and site.source:
        blocks.append(Excerpt(site.source, site.column, site.end_column))
    found = words(
        Span(body.op, "code"), f": found {body.found}; {body.device} allows {body.allowed}"
    )
    blocks.append(Paragraph(found))
    if body.remedy:
        blocks.append(Paragraph(prose(body.remedy), "Try:"))
    blocks += _repro(members, written, reading.run.header.cwd)
    times = f"{body.stage} graph, {count(len(members), 'time')}"
    blocks.append(Paragraph(words(Span(times, "dim"))))
    style: Style = "bad" if body.severity == "error" else "warn"
    right = words(Span(f"{body.rule} {body.severity}", style))
    tags = ("kind:violation", f"category:{body.rule}")
    model = f"{body.model}: " if body.model else ""
    return Item(str(number), words(model, Span(where, "strong")), right, tuple(blocks), tags=tags)


def _repro(
    members: list[tuple[Event, Violation]], written: Mapping[str, ReproWritten], cwd: str
) -> list[Block]:
    """One that there is goes before reasons why there is none."""
    known = [written[event.id] for event, _ in members if event.id in written]
    for each in sorted(known, key=lambda body: not body.path):
        if not each.path:
            return [Paragraph(words(Span(each.reason, "dim")), "No repro:")]
        path, inside = repro_place(each.path, cwd)
        size = f" ({count(each.ops, 'operation')})" if each.ops else ""
        return [Paragraph(words(Span(path, "code"), inside + size), "Repro:")]
    return []


def violations_document(title: str, reading: Reading) -> Document:
    """This section alone."""
    nothing = Paragraph(words("No backend recorded a violation in this run."))
    blocks = tuple(_build(reading)) or (nothing,)
    subtitle = " ".join(reading.run.header.command)
    return Document(title, subtitle, (Part(SECTION.id, SECTION.title, blocks),))


SECTION = Section(
    "violations", 25, _build, "Constraint violations", "what a device does not support"
)
