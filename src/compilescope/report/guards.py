"""Guards and graphs as blocks: what `analyze` and the guard inspector show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from compilescope.model.guards import GuardCost, GuardNode
from compilescope.report.blocks import (
    Block,
    Document,
    Facts,
    Heading,
    Item,
    Paragraph,
    Part,
    Span,
    Words,
    note,
    words,
)
from compilescope.report.places import count, place
from compilescope.rules.graphs.dynamo import CapturedGraph
from compilescope.rules.guarded import GuardedGraph

_MOST_LINES = 6
_MOST_NODES = 40
_MOST_COSTLY = 8
_MOST_DEPTH = 12


_IN_PYTHON = "`.graphs` has them all"
"""An inspector is used from Python alone."""


def guards_document(title: str, graphs: Sequence[GuardedGraph], root: str) -> Document:
    """Each cache entry of a recorded run with its guards."""
    total = sum(graph.guards for graph in graphs)
    blocks: list[Block] = []
    if not graphs:
        blocks.append(Paragraph(words("No guards were recorded: nothing was compiled.")))
    for number, graph in enumerate(graphs, 1):
        if graph.latency_us is None:
            latency = "the cost of a check was not measured"
        else:
            latency = (
                f"a check took {graph.latency_us} us with cold caches, measured once by torch "
                "when it compiled; for more see GuardInspector"
            )
        blocks.append(guarded_item(number, graph, root, [note(latency)]))
    subtitle = f"{count(total, 'guard')} of {count(len(graphs), 'compiled frame')}"
    return Document(title, subtitle, (Part("guards", "", tuple(blocks)),))


def graphs_document(title: str, graphs: Sequence[CapturedGraph], root: str) -> Document:
    """The graphs of a recorded run."""
    blocks: list[Block] = []
    if not graphs:
        blocks.append(Paragraph(words("No graph was captured.")))
    for number, graph in enumerate(graphs, 1):
        left = _where(graph.file, graph.line, graph.function, graph.resumed_at, root)
        right = words(f"{count(graph.ops or 0, 'op')}  {graph.compile_id or ''}")
        end = "ended by a graph break" if graph.ended_by_break else "ran to the end of the frame"
        backend = f"backend {graph.backend}; " if graph.backend else ""
        blocks.append(Item(str(number), left, right, (note(f"{backend}{end}"),)))
    ops = sum(graph.ops or 0 for graph in graphs)
    subtitle = f"{count(len(graphs), 'graph')}, {count(ops, 'op')}"
    return Document(title, subtitle, (Part("graphs", "", tuple(blocks)),))


def guarded_item(
    number: int,
    graph: GuardedGraph,
    root: str,
    rest: Iterable[Block] = (),
    see_all: str = "see --json",
) -> Item:
    """A cache entry: its guards by kind and by the user's line; then the rest."""
    left = _where(graph.file, graph.line, graph.function, graph.resumed_at, root)
    right = words(Span(count(graph.guards, "guard"), "strong"), f"  {graph.compile_id or ''}")
    blocks: list[Block] = []
    kinds = ", ".join(f"{kind} {times}" for kind, times in graph.kinds.items())
    if kinds:
        blocks.append(Paragraph(words(kinds)))
    for line in graph.lines[:_MOST_LINES]:
        inner = ", ".join(f"{kind} {times}" for kind, times in line.kinds.items())
        at = Span(place(line.file, line.line, root), "strong")
        text = words(at, " ", Span(line.source, "code"), Span(f"  {inner}", "dim"))
        blocks.append(Paragraph(text, hanging=str(line.guards)))
    if len(graph.lines) > _MOST_LINES:
        blocks.append(note(f"and {len(graph.lines) - _MOST_LINES} more lines; {see_all}"))
    if graph.elsewhere > 0:
        blocks.append(note(f"{graph.elsewhere} with no line of yours: torch's own state"))
    return Item(str(number), left, right, (*blocks, *rest))


def inspection_document(
    title: str, subtitle: str, entries: Iterable[tuple[GuardedGraph, GuardCost | None]], root: str
) -> Document:
    """What a guard inspector found, with measured costs."""
    blocks: list[Block] = []
    for number, (graph, cost) in enumerate(entries, 1):
        if cost is None:
            missing = note("the cost of its check could not be measured")
            blocks.append(guarded_item(number, graph, root, [missing], _IN_PYTHON))
            continue
        facts = Facts(
            (
                ("graph", words(count(graph.ops, "op") if graph.ops is not None else "none")),
                ("check, warm", words(Span(_ns(cost.warm_ns), "strong"), " a call")),
                ("check, cold", words(_ns(cost.cold_ns), " with the caches flushed first")),
            )
        )
        rest = [facts, *_costly(cost), *_tree(cost)]
        blocks.append(guarded_item(number, graph, root, rest, _IN_PYTHON))
    parts = (
        Part("guards", "", tuple(blocks)),
        Part("measured", "How it was measured", (Paragraph(words(MEASURED)),)),
    )
    return Document(title, subtitle, parts)


MEASURED = (
    "Warm: the median over batches of checks of the whole guard tree, less an empty tree in "
    "turns with it. Cold: the median of torch's own profiler, which flushes the caches before each "
    "check. A part: two copies of the tree, one with the part and one with only the way to it, in "
    "turns, the fastest batch of each; the difference of the two. What is left is the root's own: "
    "global state, and guards that compare several values (no aliasing)."
)


def costliest(cost: GuardCost) -> list[GuardNode]:
    """Nodes by their own cost, dearest first."""
    measured = [node for node in cost.tree.walk() if node.own_ns]
    return sorted(measured, key=lambda node: -(node.own_ns or 0))


def _costly(cost: GuardCost) -> list[Block]:
    blocks: list[Block] = [Heading("Most expensive guards", "each value without what is below it")]
    for node in costliest(cost)[:_MOST_COSTLY]:
        text = words(Span(node.source, "code"), Span(f"  {_kinds(node)}", "dim"))
        blocks.append(Paragraph(text, hanging=f"{_ns(node.own_ns):>8}"))
    if len(blocks) == 1:
        blocks.append(note("none could be told from the noise"))
    return blocks


def _tree(cost: GuardCost) -> list[Block]:
    blocks: list[Block] = [Heading("Guard tree", "each value with all that is below it")]
    rows = list(_rows(cost.tree, "", 0))
    for depth, name, node in rows[:_MOST_NODES]:
        lead = Span("│ " * min(depth, _MOST_DEPTH), "dim")
        kind = f"  {node.type.rsplit('.', 1)[-1]}" if node.type else ""
        text = words(lead, Span(name, "code"), kind, Span(f"  {_kinds(node)}", "dim"))
        blocks.append(Paragraph(text, hanging=f"{_ns(node.total_ns):>8}"))
    if len(rows) > _MOST_NODES:
        blocks.append(note(f"and {len(rows) - _MOST_NODES} more; see to_json()"))
    if cost.unmeasured:
        blocks.append(note(f"{count(cost.unmeasured, 'value')} not measured: the time was up"))
    return blocks


def _rows(node: GuardNode, above: str, depth: int) -> Iterable[tuple[int, str, GuardNode]]:
    """Depth, what the node adds to the one above it, and the node."""
    owner = above.removesuffix(".__dict__")
    own = depth > 1 and node.source.startswith(owner) and node.source != owner
    yield depth, node.source[len(owner) :] if own else node.source, node
    for child in node.children:
        yield from _rows(child, node.source, depth + 1)


def _kinds(node: GuardNode) -> str:
    return ", ".join(check.kind for check in node.checks)


def _where(file: str, line: int, function: str, resumed_at: int | None, root: str) -> Words:
    part = f" from line {resumed_at} on" if resumed_at else ""
    shown = place(file, line, root) if file else os.curdir
    return words(Span(shown, "strong"), f" {function}{part}")


def _ns(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value / 1000:.2f} us" if value >= 1000 else f"{value:.0f} ns"
