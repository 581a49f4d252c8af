"""Graphs: what Dynamo captured of the user's code and what became of it, stage by stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.stages.panes import GraphFigures, graph_figures, stage_title
from compilescope.knowledge.analysis.stages.printed_graph import PrintedGraph
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import StagedGraph, compilation
from compilescope.record.stack import CodeRef
from compilescope.record.uncollected import uncollected
from compilescope.report.blocks import (
    Block,
    Facts,
    Fold,
    Item,
    Panes,
    Paragraph,
    Span,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.graph_panes import GraphText, figure_rows, graph_texts, missing_stages
from compilescope.report.places import count, first_line, place, shown_bytes, shown_flops
from compilescope.report.section import Reading, Section

_COLUMNS = ("graph", "place", "compile ID", "ops", "FLOPs", "memory", "backend", "ended by")
# Chosen: each entry stays a few lines; benchmarks/page_size.py shows how quickly a page of many
# graphs opens.
_MOST_REASON = 120
_MOST_ENTRIES = 600
_MOST_NAMES = 12
_HOW_COUNTED = (
    "FLOPs count matrix products, convolutions and attention (a multiply-add is two); other ops "
    "are not counted. Memory adds up inputs, parameters, intermediates and outputs as if each were "
    "stored; fusion avoids storing many of them."
)
Breaks = dict[tuple[object, ...], str]
"""The compilation -> the anchor of the last graph break in it."""


class _Entry(msgspec.Struct, frozen=True):
    """A graph, those with the same code, and all that there is to say of them."""

    number: int
    members: Sequence[StagedGraph]
    figures: GraphFigures
    text: GraphText
    alike: Words = ()
    """In what it differs from an earlier one with the same ops."""

    @property
    def graph(self) -> StagedGraph:
        return self.members[0]

    @property
    def anchor(self) -> str:
        return graph_anchor(self.graph)

    @property
    def name(self) -> str:
        times = f" ×{len(self.members)}" if len(self.members) > 1 else ""
        return f"{self.number}{times}"

    @property
    def ops(self) -> int | None:
        return self.graph.body.ops if self.graph.body is not None else None


@uncollected()
def _build(reading: Reading) -> list[Block]:
    groups = reading.graph_groups
    if not groups:
        return []
    entries = _entries(_chosen(groups), StageReader(reading.run, reading.sources))
    breaks = _breaks(reading)
    rows = tuple(_row(entry, breaks, reading.root) for entry in entries)
    blocks: list[Block] = [Table(_COLUMNS, rows, (3, 4, 5)), note(_HOW_COUNTED)]
    if len(entries) < len(groups):
        left_out = count(len(groups) - len(entries), "more graph")
        blocks.insert(
            0,
            note(
                f"{count(len(entries), 'graph')} shown, starting with the first of each function; "
                f"{left_out} omitted. `compilescope show --section graphs --json` lists them all."
            ),
        )
    return blocks + [_item(entry, breaks, reading.root) for entry in entries]


def drawn_graphs(reading: Reading) -> list[StagedGraph]:
    """Those that have an entry, each by itself or together with its equals."""
    if len(reading.graphs) <= _MOST_ENTRIES:
        return reading.graphs
    return [graph for _, members in _chosen(reading.graph_groups) for graph in members]


def _chosen(groups: list[list[StagedGraph]]) -> list[tuple[int, list[StagedGraph]]]:
    """As many as a page can hold, with their numbers: the first of each function, then others."""
    numbered = list(enumerate(groups, 1))
    if len(groups) <= _MOST_ENTRIES:
        return numbered
    seen: set[CodeRef | None] = set()
    first: list[tuple[int, list[StagedGraph]]] = []
    rest: list[tuple[int, list[StagedGraph]]] = []
    for number, members in numbered:
        code = _code(members[0])
        (rest if code in seen else first).append((number, members))
        seen.add(code)
    return sorted((first + rest)[:_MOST_ENTRIES], key=lambda item: item[0])


def _entries(groups: Sequence[tuple[int, list[StagedGraph]]], reader: StageReader) -> list[_Entry]:
    texts = graph_texts([members[0] for _, members in groups], reader)
    entries: list[_Entry] = []
    known: dict[tuple[object, ...], tuple[_Entry, PrintedGraph]] = {}
    for number, members in groups:
        graph = members[0]
        figures = graph_figures(graph, reader)
        printed = _captured(graph, reader)
        operations = tuple((node.name, node.target, node.arguments) for node in printed.nodes)
        earlier = known.get(operations) if operations else None
        alike = _difference(*earlier, printed) if earlier is not None else ()
        entries.append(_Entry(number, members, figures, texts[graph], alike))
        known.setdefault(operations, (entries[-1], printed))
    return entries


def _captured(graph: StagedGraph, reader: StageReader) -> PrintedGraph:
    """Dynamo's graph as its text says it; empty where that is not known or too much to read."""
    stages = graph.of("dynamo")
    return (reader.affordable(stages[0]) if stages else None) or PrintedGraph()


def _difference(entry: _Entry, before: PrintedGraph, now: PrintedGraph) -> Words:
    """The graphs have the same operations: what is it that tells them apart?"""
    other = Span(f"graph {entry.number}", "plain", entry.anchor)
    for old, new in zip(before.nodes, now.nodes, strict=True):
        if old.annotation != new.annotation:
            now_is, was = (f"`{node.annotation or '?'}`" for node in (new, old))
            differs = prose(f", but `{new.name}` is {now_is} instead of {was}.")
            return words("Same ops as ", other, *differs)
    return words("Same ops and tensors as ", other, "; source lines or later stages differ.")


def graph_anchor(graph: StagedGraph) -> str:
    return f"graph-{graph.event.id}"


def _code(graph: StagedGraph) -> CodeRef | None:
    return graph.body.frame if graph.body is not None else None


def _place(graph: StagedGraph, root: str) -> str:
    code = _code(graph)
    return place(code.file, code.line, root) if code else "not captured by Dynamo"


def _function(graph: StagedGraph) -> str:
    """Which function it is of, and which part of that after a graph break."""
    code = _code(graph)
    if code is None:
        return ""
    return f" {code.function}" + (f" (from line {code.resumed_at})" if code.resumed_at else "")


def _row(entry: _Entry, breaks: Breaks, root: str) -> tuple[Words, ...]:
    graph = entry.graph
    origins = {_origin(member, root) for member in entry.members}
    others = f" and {len(origins) - 1} more" if len(origins) > 1 else ""
    ids = [member.event.compile_id or "" for member in entry.members]
    return (
        words(entry.name),
        words(Span(_place(graph, root), "plain", entry.anchor), _function(graph) + others),
        words(ids[0] + (f" and {len(ids) - 1} more" if len(ids) > 1 else "")),
        words(str(entry.ops) if entry.ops is not None else "?"),
        words(_flops(entry.figures)),
        words(_memory(entry.figures)),
        words(" / ".join(dict.fromkeys(_backend(member) for member in entry.members))),
        _ends(entry.members, breaks),
    )


def _item(entry: _Entry, breaks: Breaks, root: str) -> Item:
    graph = entry.graph
    left = words(Span(_place(graph, root), "strong"), _function(graph))
    ops = count(entry.ops, "op") if entry.ops is not None else ""
    ident = graph.event.compile_id if len(entry.members) == 1 else ""
    right = words(" · ".join(text for text in (ops, ident) if text))
    rows = [*_shared(entry.members, breaks, root), *figure_rows(graph, entry.figures)]
    blocks: list[Block] = [Facts(tuple(rows))]
    if entry.alike:
        blocks.append(Paragraph(entry.alike))
    blocks += [note(sentence) for sentence in missing_stages(graph)]
    if graph.body is not None and graph.body.ended_by_break and graph.body.reason:
        blocks.append(note(f"Ended by: {first_line(graph.body.reason)[:_MOST_REASON]}"))
    blocks += _stages(graph, entry.text)
    return Item(
        entry.name,
        left,
        right,
        tuple(blocks),
        entry.anchor,
        tags=("kind:graph",),
        also=tuple(graph_anchor(member) for member in entry.members[1:]),
    )


def _shared(
    members: Sequence[StagedGraph], breaks: Breaks, root: str
) -> Iterable[tuple[str, Words]]:
    """For graphs with the same code: their compile ids, and in what they differ."""
    if len(members) == 1:
        return
    ids = [member.event.compile_id or "unknown" for member in members]
    more = f" and {len(ids) - _MOST_NAMES} more" if len(ids) > _MOST_NAMES else ""
    yield "Same code", words(f"{len(ids)} graphs: {', '.join(ids[:_MOST_NAMES])}{more}")
    differing = {
        "Functions": [_origin(member, root) for member in members],
        "Backends": [_backend(member) for member in members],
        "Processes": [str(member.event.pid) for member in members],
    }
    for label, values in differing.items():
        if len(set(values)) > 1:
            yield label, words(_counted(values))
    if len({_end(member, breaks) for member in members}) > 1:
        yield "Ended by", _ends(members, breaks)


def _origin(graph: StagedGraph, root: str) -> str:
    return _place(graph, root) + _function(graph)


def _counted(values: Iterable[str]) -> str:
    found = Counter(values).most_common()
    shown = [f"{value} ×{times}" if times > 1 else value for value, times in found[:_MOST_NAMES]]
    more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
    return ", ".join(shown) + more


def _backend(graph: StagedGraph) -> str:
    return (graph.body.backend if graph.body is not None else None) or "?"


def _stages(graph: StagedGraph, text: GraphText) -> list[Block]:
    blocks: list[Block] = []
    if text.panes:
        blocks.append(Fold(words("Code at each stage"), (Panes(text.panes),)))
    if text.cut or text.left_out or not text.panes:
        blocks += _elsewhere(graph, text)
    return blocks


def _elsewhere(graph: StagedGraph, text: GraphText) -> list[Block]:
    """Where to find what the page has no room for."""
    kept = [(stage, stage.text) for stage in graph.stages if stage.text]
    if not kept:
        return [note("Its code was not recorded.")]
    lack = f"Omitted for size: {', '.join(text.left_out)}. " if text.left_out else ""
    lack += f"Truncated: {', '.join(text.cut)}. " if text.cut else ""
    short = {*text.left_out, *text.cut}
    files = "; ".join(f"{stage.kind} {name}" for stage, name in kept if stage_title(stage) in short)
    return [note(lack + (f"Full text in the run's folder, by name: {files}" if files else ""))]


def _flops(figures: GraphFigures) -> str:
    if figures.flops is None:
        return "not counted"
    counted = sum(part.counted_ops for part in (*figures.forward, *figures.backward))
    return shown_flops(figures.flops) if counted else "none counted"


def _memory(figures: GraphFigures) -> str:
    seen = figures.caught
    if seen is None:
        return "not counted"
    total = seen.inputs + seen.intermediates + seen.outputs
    return shown_bytes(total + seen.parameters if seen.parameters is not None else total)


def _ends(members: Iterable[StagedGraph], breaks: Breaks) -> Words:
    ends = Counter(_end(member, breaks) for member in members)
    if len(ends) == 1:
        return (next(iter(ends)),)
    parts: list[str | Span] = []
    for end, times in ends.items():
        parts += [", " if parts else "", end, f" ×{times}" if times > 1 else ""]
    return words(*(part for part in parts if part))


def _end(graph: StagedGraph, breaks: Breaks) -> Span:
    if graph.body is None or graph.body.ended_by_break is None:
        return Span("unknown")
    if not graph.body.ended_by_break:
        return Span("end of function")
    return Span("graph break", "warn", breaks.get(compilation(graph.event), ""))


def _breaks(reading: Reading) -> Breaks:
    found: Breaks = {}
    owners = {
        event_id: site.fingerprint for site in reading.digest.sites for event_id in site.because
    }
    for event in reading.run.events:
        if event.id in owners:
            found[compilation(event)] = owners[event.id]
    return found


SECTION = Section("graphs", 80, _build, "Graphs", "your code at each stage", in_summary=False)
