"""What an adapter made of its graphs, as a document: islands, their share, and the ops left out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from compilescope.backends.islands.records import (
    AdapterReport,
    Crossing,
    GraphIslands,
    HostOp,
    Island,
    WrongnessCheck,
    amount_share,
    share,
)
from compilescope.record.graphs.statistics import Amount
from compilescope.record.stack import Frame
from compilescope.report.blocks import (
    Block,
    Document,
    Excerpt,
    Facts,
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
from compilescope.report.places import count, place, shown_bytes, shown_flops
from compilescope.report.render.terminal import to_text

_STAGES = {
    "dynamo": "Dynamo's graph",
    "aot_forward": "Forward graph",
    "aot_backward": "Backward graph",
    "aot_inference": "Inference graph",
}
_STATUS: dict[str, Style] = {"compiled": "good", "emulated": "good", "partial": "warn"}
_VERDICT: dict[str, Style] = {"pass": "good", "fail": "bad", "unknown": "warn"}
# Chosen: what a summary has room for; the full report shows all.
_MOST_HOST = 8
_MOST_ISLANDS = 30


def islands_text(report: AdapterReport, *, full: bool = False, root: str | None = None) -> str:
    """The report as plain text. `root` is the folder that files are named relative to: where the
    program was started, if nothing else is said."""
    return to_text(islands_document(report, full=full, root=os.getcwd() if root is None else root))


def islands_document(report: AdapterReport, *, full: bool = False, root: str = "") -> Document:
    """With `full`, everything; else the islands and ops that matter most."""
    parts = [Part("shares", "", (_shares(report),))]
    for number, graph in enumerate(report.graphs):
        name = _STAGES.get(graph.stage, graph.stage)
        remark = f"compile ID {graph.compile_id}" if graph.compile_id else ""
        parts.append(Part(f"graph-{number}", name, tuple(_graph(graph, full, root)), remark))
    if report.checks:
        parts.append(Part("checks", "Silent errors", (_checks(report.checks),)))
    return Document(
        f"compilescope islands on {report.device}", report.adapter, tuple(parts), root=root
    )


def _shares(report: AdapterReport) -> Facts:
    graphs = report.graphs
    ops, device = sum(g.ops for g in graphs), sum(g.device_ops for g in graphs)
    partial = sum(g.partial_ops for g in graphs)
    inward = [c for i in report.islands for c in i.inward]
    outward = [c for i in report.islands for c in i.outward]
    held = [c for c in inward if c.other == "parameter"]
    of_them = f", {len(held)} of them parameters, {_moved(held)}" if held else ""
    parted = f", {partial} more in islands that run only partly on the device" if partial else ""
    rows = [
        ("graphs", words(str(len(graphs)))),
        ("islands", words(str(len(report.islands)))),
        ("ops on device", words(f"{device} of {ops}, {_percent(report.ops_share)}{parted}")),
        ("FLOPs", words(_percent(report.flops_share))),
        ("bytes produced", words(_percent(report.made_share))),
        ("to the device", words(f"{count(len(inward), 'tensor')}, {_moved(inward)}{of_them}")),
        ("from the device", words(f"{count(len(outward), 'tensor')}, {_moved(outward)}")),
    ]
    return Facts(tuple(rows))


def _graph(graph: GraphIslands, full: bool, root: str) -> Iterable[Block]:
    part = share(graph.device_ops, graph.ops)
    flops = amount_share(graph.device_flops, graph.flops)
    told = f"{graph.device_ops} of {count(graph.ops, 'op')} on the device ({_percent(part)})"
    if flops is not None and graph.flops.known:
        told += f", {_percent(flops)} of {shown_flops(graph.flops)}"
    yield Paragraph(words(f"{told}; the host runs the rest with {graph.host_runs}."))
    if graph.islands:
        most = len(graph.islands) if full else _MOST_ISLANDS
        shown = graph.islands[:most]
        yield Table(
            ("island", "status", "ops", "in", "out", "first line"),
            tuple(_row(island, root) for island in shown),
            (2,),
        )
        if len(graph.islands) > most:
            yield note(f"and {count(len(graph.islands) - most, 'more island')}")
        for island in shown:
            if island.reason or island.warnings:
                said = "; ".join(filter(None, (island.reason, *island.warnings)))
                yield Paragraph(words(said), f"island {island.number}:")
        if full:
            yield Fold(words("Tensors crossing each island's boundary"), (_borders(shown),))
    else:
        yield note("No islands.")
    yield from _behind(graph, full, root)
    for remark in graph.notes:
        yield Paragraph(words(Span(remark, "warn")))


def _row(island: Island, root: str) -> tuple[Words, ...]:
    return (
        words(str(island.number)),
        words(Span(island.status, _STATUS.get(island.status, "bad"))),
        words(str(island.ops)),
        words(f"{len(island.inward)}, {_moved(island.inward)}"),
        words(f"{len(island.outward)}, {_moved(island.outward)}"),
        words(_at(island.frame, root)),
    )


def _borders(islands: Sequence[Island]) -> Table:
    rows = [
        (words(f"{island.number} {way}"), words(c.name), words(c.other), words(_moved([c])))
        for island in islands
        for way, crossings in (("in", island.inward), ("out", island.outward))
        for c in crossings
    ]
    return Table(("island", "tensor", "from or to", "bytes"), tuple(rows), (3,))


def _behind(graph: GraphIslands, full: bool, root: str) -> Iterable[Block]:
    """What stayed on the host, dearest first."""
    if not graph.host:
        return
    most = len(graph.host) if full else _MOST_HOST
    yield note("Ops left on the host, by lost coverage:")
    for number, op in enumerate(graph.host[:most], 1):
        yield _host_item(number, op, share(graph.device_ops, graph.ops), root)
    if len(graph.host) > most:
        yield note(f"and {len(graph.host) - most} more")


def _host_item(number: int, op: HostOp, now: float | None, root: str) -> Item:
    blocks: list[Block] = []
    first = next((p.frame for p in op.places if p.frame is not None), None)
    if first is not None and first.source:
        blocks.append(Excerpt(first.source.strip()))
    takes = f"; the device allows {op.allowed}" if op.allowed else ""
    cannot = "inconclusive: " if op.severity == "unknown" else ""
    blocks.append(Paragraph(words(f"{cannot}{op.found}{takes}")))
    if op.ops_share_with is not None and now is not None and op.ops_share_with > now:
        gain = (
            f"with it, {_percent(op.ops_share_with)} of the ops would run on the device "
            f"(now {_percent(now)})"
        )
        blocks.append(Paragraph(words(gain)))
    if op.remedy:
        blocks.append(Paragraph(prose(op.remedy), "Try:"))
    where = _at(first, root)
    lines = sum(p.frame is not None for p in op.places)
    if lines > 1:
        where += f" and {count(lines - 1, 'more line', 'more lines')}"
    left = words(Span(op.op, "strong"), f" at {where}")
    right = words(Span(f"{op.rule}, {count(op.nodes, 'node')}", "warn"))
    return Item(str(number), left, right, tuple(blocks), tags=(f"category:{op.rule}",))


def _checks(checks: Sequence[WrongnessCheck]) -> Table:
    rows = tuple(
        (
            words(check.name),
            words(Span(check.verdict, _VERDICT[check.verdict])),
            words("model" if check.island is None else f"{check.stage} {check.island}"),
            words(check.reason),
        )
        for check in checks
    )
    return Table(("check", "verdict", "island", "result"), rows)


def _moved(crossings: Sequence[Crossing]) -> str:
    known = sum(c.size_bytes or 0 for c in crossings)
    return shown_bytes(Amount(known, sum(c.size_bytes is None for c in crossings)))


def _percent(part: float | None) -> str:
    return "unknown" if part is None else f"{100 * part:.1f} %"


def _at(frame: Frame | None, root: str) -> str:
    return place(frame.file, frame.line, root) if frame is not None else "unknown line"
