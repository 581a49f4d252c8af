"""Graphs: what Dynamo caught of the user's code and what became of it, stage by stage."""

from __future__ import annotations

from dataclasses import dataclass

from compilescope.model.stack import CodeRef
from compilescope.report.amounts import shown_bytes, shown_flops
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
    words,
)
from compilescope.report.graph_panes import GraphText, graph_texts
from compilescope.report.graph_words import figure_rows, missing_stages
from compilescope.report.places import count, first_line, place
from compilescope.report.section import Reading, Section
from compilescope.rules.stages.collect import StagedGraph, compilation, staged_graphs
from compilescope.rules.stages.figures import GraphFigures, graph_figures
from compilescope.rules.stages.reader import StageReader

_COLUMNS = ("", "place", "compile id", "ops", "FLOPs", "memory", "backend", "ended by")
_MOST_REASON = 120
_MOST_GRAPHS = 300
_HOW_COUNTED = (
    "FLOPs: of matrix products, convolutions and attention, two for a multiplication and its "
    "addition; other ops are not counted. Memory: inputs, parameters, what ops make and outputs, "
    "each as if it were stored; fusion keeps much of it out of memory."
)


@dataclass(frozen=True)
class _Entry:
    """A graph and all that there is to say of it."""

    number: int
    graph: StagedGraph
    figures: GraphFigures
    text: GraphText

    @property
    def anchor(self) -> str:
        return f"graph-{self.graph.event.id}"

    @property
    def code(self) -> CodeRef | None:
        return self.graph.body.frame if self.graph.body is not None else None

    @property
    def part(self) -> str:
        """Which part of the function it is of, after a break."""
        resumed = self.code.resumed_at if self.code is not None else None
        return f" from line {resumed} on" if resumed else ""

    @property
    def ops(self) -> int | None:
        return self.graph.body.ops if self.graph.body is not None else None

    def place(self, root: str) -> str:
        return place(self.code.file, self.code.line, root) if self.code else "not caught by Dynamo"


def _build(reading: Reading) -> list[Block]:
    graphs = staged_graphs(reading.run)
    if not graphs:
        return []
    reader = StageReader(reading.run, reading.sources)
    chosen = _chosen(graphs)
    texts = graph_texts([graph for _, graph in chosen], reader)
    entries = {
        graph: _Entry(number, graph, graph_figures(graph, reader), texts[graph])
        for number, graph in chosen
    }
    breaks = _breaks(reading)
    rows = tuple(_row(entry, breaks, reading.root) for entry in entries.values())
    blocks: list[Block] = [Table(_COLUMNS, rows, (0, 3, 4, 5)), note(_HOW_COUNTED)]
    if len(chosen) < len(graphs):
        left_out = count(len(graphs) - len(chosen), "more graph")
        blocks.insert(
            0,
            note(
                f"A page holds {len(chosen)} graphs, of every function the first: {left_out} "
                "are left out here. `compilescope analyze --type graphs --json` lists them all."
            ),
        )
    return blocks + [_item(entry, entries, reading.root) for entry in entries.values()]


def _chosen(graphs: list[StagedGraph]) -> list[tuple[int, StagedGraph]]:
    """As many as a page can hold, with their numbers: the first of each function, then others."""
    numbered = list(enumerate(graphs, 1))
    if len(graphs) <= _MOST_GRAPHS:
        return numbered
    seen: set[CodeRef | None] = set()
    first: list[tuple[int, StagedGraph]] = []
    rest: list[tuple[int, StagedGraph]] = []
    for number, graph in numbered:
        code = graph.body.frame if graph.body is not None else None
        (rest if code in seen else first).append((number, graph))
        seen.add(code)
    return sorted((first + rest)[:_MOST_GRAPHS], key=lambda item: item[0])


def _row(entry: _Entry, breaks: dict[tuple[object, ...], str], root: str) -> tuple[Words, ...]:
    body = entry.graph.body
    return (
        words(str(entry.number)),
        words(Span(entry.place(root), "plain", entry.anchor), entry.part),
        words(entry.graph.event.compile_id or ""),
        words(str(entry.ops) if entry.ops is not None else "?"),
        words(_flops(entry.figures)),
        words(_memory(entry.figures)),
        words((body.backend if body is not None else None) or "?"),
        _end(entry.graph, breaks),
    )


def _item(entry: _Entry, entries: dict[StagedGraph, _Entry], root: str) -> Item:
    graph, code = entry.graph, entry.code
    function = f" {code.function}{entry.part}" if code is not None else ""
    left = words(Span(entry.place(root), "strong"), function)
    ops = count(entry.ops, "op") if entry.ops is not None else ""
    right = words(f"{ops}  {graph.event.compile_id or ''}".strip())
    blocks: list[Block] = [Facts(tuple(figure_rows(graph, entry.figures)))]
    blocks += [note(sentence) for sentence in missing_stages(graph)]
    if graph.body is not None and graph.body.ended_by_break and graph.body.reason:
        blocks.append(note(f"ended by: {first_line(graph.body.reason)[:_MOST_REASON]}"))
    if entry.text.twin is not None:
        twin = entries[entry.text.twin]
        other = Span(f"graph {twin.number}", "plain", twin.anchor)
        blocks.append(Paragraph(words("Its code is that of ", other, ", at every stage.")))
    else:
        blocks += _code(graph, entry.text)
    return Item(str(entry.number), left, right, tuple(blocks), entry.anchor, tags=("kind:graph",))


def _code(graph: StagedGraph, text: GraphText) -> list[Block]:
    blocks: list[Block] = []
    if text.panes:
        titles = ", ".join(pane.title for pane in text.panes)
        summary = words("Code at each stage", Span(f"  {titles}", "dim"))
        blocks.append(Fold(summary, (Panes(text.panes),)))
    if text.cut or text.left_out or not text.panes:
        blocks += _elsewhere(graph, text)
    return blocks


def _elsewhere(graph: StagedGraph, text: GraphText) -> list[Block]:
    """Where to find what the page has no room for."""
    kept = [(stage, stage.text) for stage in graph.stages if stage.text]
    if not kept:
        return [note("No code of it was recorded.")]
    lack = f"No room here for: {', '.join(text.left_out)}. " if text.left_out else ""
    lack += "What is shown was cut. " if text.cut else ""
    files = "; ".join(f"{stage.kind} {name}" for stage, name in kept)
    return [note(f"{lack}The whole text is kept in the run under artifacts/: {files}")]


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


def _end(graph: StagedGraph, breaks: dict[tuple[object, ...], str]) -> Words:
    if graph.body is None or graph.body.ended_by_break is None:
        return words("unknown")
    if not graph.body.ended_by_break:
        return words("the function's end")
    return words(Span("a graph break", "warn", breaks.get(compilation(graph.event), "")))


def _breaks(reading: Reading) -> dict[tuple[object, ...], str]:
    """The compilation -> the last break that was met in it."""
    found: dict[tuple[object, ...], str] = {}
    owners = {
        event_id: site.fingerprint for site in reading.digest.sites for event_id in site.because
    }
    for event in reading.run.events:
        if event.id in owners:
            found[compilation(event)] = owners[event.id]
    return found


SECTION = Section("graphs", 80, _build, "Graphs", "what became of your code", in_summary=False)
