"""What a device cannot run, by model and kind."""

from __future__ import annotations

from collections import Counter

from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.analysis.check_results import CheckResult
from compilescope.knowledge.findings.violations import ViolationFinding, each_place_once, violations
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
from compilescope.report.section import Reading, Section, first_items


def _build(reading: Reading) -> list[Block]:
    found = violations(reading.run)
    unsaid = _left_open(reading.digest.constraints)
    if not found:
        return unsaid
    kinds = Counter((each.model, each.device, each.rule or "", each.severity) for each in found)
    rows = tuple(
        (
            words(model or "-"),
            words(device),
            words(rule),
            words(severity),
            words(str(times)),
        )
        for (model, device, rule, severity), times in sorted(kinds.items(), key=str)
    )
    table = Table(("model", "device", "constraint", "severity", "violations"), rows, (4,))
    if is_benchmark(reading.run) and not reading.full:
        return [table, *unsaid]  # Of many models: the figures need the room.
    places = list(each_place_once(found))
    return [
        table,
        *unsaid,
        *first_items(reading, places, lambda n, each: _item(n, each, reading), "constraints"),
    ]


def _left_open(check: CheckResult) -> list[Block]:
    """A run that a device saw a part of did not pass it."""
    if check.state == "unchecked" or not check.doubt:
        return []
    begin = "Unknown, not passed:" if check.state == "unknown" else "Maybe more:"
    return [Paragraph(words(Span(begin, "warn"), f" {check.doubt}."), hanging="!")]


def _item(number: int, finding: ViolationFinding, reading: Reading) -> Item:
    where = place(finding.file, finding.line, reading.root) if finding.file else "unknown location"
    blocks: list[Block] = []
    if finding.source:
        blocks.append(Excerpt(finding.source, finding.column, finding.end_column))
    blocks.append(Paragraph(words(Span(finding.op, "code"), f": {finding.message}")))
    if finding.first_step:
        blocks.append(Paragraph(prose(finding.first_step), "Try:"))
    blocks += _repro(finding, reading.run.header.cwd)
    times = f"{finding.stage} graph, {count(finding.count, 'time')}"
    blocks.append(Paragraph(words(Span(times, "dim"))))
    style: Style = "bad" if finding.severity == "error" else "warn"
    right = words(Span(f"{finding.rule} {finding.severity}", style))
    tags = ("kind:violation", f"category:{finding.rule}")
    model = f"{finding.model}: " if finding.model else ""
    return Item(str(number), words(model, Span(where, "strong")), right, tuple(blocks), tags=tags)


def _repro(finding: ViolationFinding, cwd: str) -> list[Block]:
    if finding.repro:
        path, inside = repro_place(finding.repro, cwd)
        size = f" ({count(finding.repro_ops, 'operation')})" if finding.repro_ops else ""
        return [Paragraph(words(Span(path, "code"), inside + size), "Repro:")]
    if finding.no_repro:
        return [Paragraph(words(Span(finding.no_repro, "dim")), "No repro:")]
    return []


def violations_document(title: str, reading: Reading) -> Document:
    """This section alone."""
    checked = reading.digest.constraints.state == "pass"
    nothing = (
        "No violations: every graph was checked."
        if checked
        else "No device checked the graphs of this run."
    )
    blocks = tuple(_build(reading)) or (Paragraph(words(nothing)),)
    subtitle = " ".join(reading.run.header.command)
    return Document(title, subtitle, (Part(SECTION.id, SECTION.title, blocks),))


SECTION = Section(
    "violations", 25, _build, "Constraint violations", "what a device does not support"
)
