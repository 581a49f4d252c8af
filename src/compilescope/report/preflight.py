"""What devices say to a program, as a document: a table of them, then each refusal once."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.knowledge.analysis.preflight import DeviceReport, NotChecked
from compilescope.knowledge.findings.violations import ViolationFinding
from compilescope.record.byte_counts import shown_bytes
from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Fold,
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
from compilescope.report.places import count, place

# Chosen: refusals of the one device asked about, and of each of several; JSON has all.
_MOST = 60
_MOST_OF_SEVERAL = 5
_STYLES: dict[str, Style] = {"error": "bad", "warning": "warn", "unknown": "dim"}


def preflight_document(
    title: str, subtitle: str, reports: Sequence[DeviceReport], root: str
) -> Document:
    parts = [Part("devices", "", (_table(reports),))]
    most = _MOST if len(reports) == 1 else _MOST_OF_SEVERAL
    for report in reports:
        parts.append(_part(report, root, most))
    not_checked = reports[0].not_checked if reports else ()
    if not_checked:
        blocks = tuple(_not_checked(code, root) for code in not_checked[:_MOST])
        rest = len(not_checked) - _MOST
        more = (note(f"and {rest} more; see --json"),) if rest > 0 else ()
        parts.append(Part("unchecked", "Not checked", (*blocks, *more), "code outside the graphs"))
    return Document(title, subtitle, tuple(parts), root=root)


def _table(reports: Sequence[DeviceReport]) -> Table:
    columns = ("device", "errors", "warnings", "unknown", "ops supported", "peak")
    return Table(columns, tuple(_row(report) for report in reports), (1, 2, 3, 4, 5))


def _row(report: DeviceReport) -> tuple[Words, ...]:
    def number(amount: int, style: Style) -> Words:
        return words(Span(str(amount), style if amount else "plain"))

    coverage = f"{report.coverage:.1f} %" if report.coverage is not None else "unknown"
    peak = shown_bytes(report.peak_bytes) if report.peak_bytes is not None else "unknown"
    return (
        words(Span(report.device, "strong")),
        number(report.errors, "bad"),
        number(report.warnings, "warn"),
        number(len(report.unknown), "warn"),
        words(coverage),
        words(peak),
    )


def _part(report: DeviceReport, root: str, most: int) -> Part:
    blocks: list[Block] = [Paragraph(_verdict(report))]
    file, _, line = report.peak_at.rpartition(":")
    if file and report.peak_bytes is not None:
        at = place(file, int(line), root)
        blocks.append(note(f"The peak of {shown_bytes(report.peak_bytes)} is at {at}."))
    groups = _grouped(report.violations)
    blocks += [_item(number, members, root) for number, members in enumerate(groups[:most], 1)]
    if len(groups) > most:
        rest = f"and {len(groups) - most} more places: give only this --device, or use --json"
        blocks += [note(""), note(rest)]
    unclear = _grouped(report.unknown)
    if unclear:
        inside: list[Block] = []
        inside += [_item(n, members, root) for n, members in enumerate(unclear[:most], 1)]
        if len(unclear) > most:
            inside.append(note(f"and {len(unclear) - most} more places; see --json"))
        label = f"Inconclusive: {count(len(report.unknown), 'operation')}"
        blocks.append(Fold(words(label), tuple(inside)))
    return Part(f"device-{report.device}", report.device, tuple(blocks), report.title)


def _verdict(report: DeviceReport) -> Words:
    graphs = count(report.graphs, "graph")
    if not report.graphs:
        return words(Span("No graph was recorded, so there is nothing to check.", "warn"))
    if report.errors:
        refused = f"{report.device} does not support {count(report.errors, 'operation')}"
        return words(Span(f"{refused} in {graphs}.", "bad"))
    if report.unknown:
        return words(
            Span(
                f"No unsupported operations found, but not all of {graphs} could be checked.",
                "warn",
            )
        )
    if report.warnings:
        taken = f"{report.device} supports {graphs}, with {count(report.warnings, 'warning')}."
        return words(Span(taken, "warn"))
    return words(Span(f"{report.device} supports all of {graphs}.", "good"))


def _grouped(found: Sequence[ViolationFinding]) -> list[list[ViolationFinding]]:
    """The same refusal of the same line, in every graph and layer, most frequent first."""
    groups: dict[tuple[object, ...], list[ViolationFinding]] = {}
    for v in found:
        what = (v.op, v.found) if v.severity != "unknown" else ()
        key = (v.severity, v.rule, v.file, v.line, v.allowed, v.stage, *what)
        groups.setdefault(key, []).append(v)
    return sorted(groups.values(), key=lambda members: (members[0].severity, -len(members)))


def _item(number: int, members: list[ViolationFinding], root: str) -> Item:
    first = members[0]
    blocks: list[Block] = []
    if first.source:
        blocks.append(Excerpt(first.source.strip()))
    others = len({member.op for member in members}) - 1
    more = f" and {others} more" if others else ""
    taken = f"{more}: found {first.found}; allowed: {first.allowed}"
    blocks.append(Paragraph(words(Span(first.op, "code"), taken)))
    if first.first_step:
        blocks.append(Paragraph(prose(first.first_step), "Try:"))
    where = "backward graph" if first.stage == "aot_backward" else "graph"
    models = ", ".join(dict.fromkeys(member.model for member in members if member.model))
    graphs = len({member.graph for member in members})
    times = f"{count(len(members), 'time')} in {count(graphs, where)} of {models or 'the program'}"
    blocks.append(note(times))
    at = place(first.file, first.line, root) if first.file else "unknown location"
    function = f" in {first.function}" if first.function else ""
    right = words(Span(f"{first.rule} {first.severity}", _STYLES[first.severity]))
    tags = ("kind:violation", f"category:{first.rule}")
    return Item(str(number), words(Span(at, "strong"), function), right, tuple(blocks), tags=tags)


def _not_checked(code: NotChecked, root: str) -> Paragraph:
    at = Span(place(code.file, code.line, root) if code.file else "unknown location", "strong")
    return Paragraph(words(at, f" {code.what}: ", Span(code.why, "dim")), "-")
