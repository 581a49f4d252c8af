"""Guards and graphs as blocks: what `show --section` and the guard inspector show."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.dynamo_graphs import BreakReason, DynamoGraph
from compilescope.knowledge.analysis.guarded_graphs import GuardedGraph, GuardGroup, guard_groups
from compilescope.record.guards import GuardCost, GuardNode
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

# Chosen: each item stays about a screen; what is left out is counted, and JSON has it all.
_MOST_LINES = 6
_MOST_DIFFERENCES = 4
_MOST_SOURCES = 2
_MOST_IDS = 4
_MOST_LETTERS = 60
_MOST_NODES = 40
_MOST_COSTLY = 8
_MOST_DEPTH = 12
_MOST_BREAKS = 12


_IN_PYTHON = "`.graphs` has them all"
"""An inspector is used from Python alone."""


def guards_document(
    title: str,
    graphs: Sequence[GuardedGraph],
    root: str,
    breaks: Sequence[BreakReason] = (),
    captured: int = 0,
) -> Document:
    """Each compiled function of a recorded run with its guards, and why there are several."""
    total = sum(graph.guards for graph in graphs)
    blocks: list[Block] = []
    if not graphs:
        blocks.append(Paragraph(words("No guards were recorded: nothing was compiled.")))
    for number, group in enumerate(guard_groups(graphs), 1):
        blocks.append(group_item(number, group, root))
    if any(graph.latency_us is not None for graph in graphs):
        blocks += [note(""), note(_LATENCY)]
    elif graphs:
        blocks += [note(""), note("PyTorch did not measure how long the checks take.")]
    subtitle = f"{count(total, 'guard')} of {count(len(graphs), 'compilation')}"
    if captured or breaks:
        subtitle += f"; {captured_words(captured, breaks)}"
    see_all = "`compilescope show --section breaks` has them all"
    parts = (
        *break_parts(breaks, root, see_all),
        Part("guards", "Guards" if breaks else "", tuple(blocks)),
    )
    return Document(title, subtitle, parts)


def captured_words(captured: int, breaks: Sequence[BreakReason]) -> str:
    """`2 graphs, 1 graph break`."""
    return f"{count(captured, 'graph')}, {count(len(breaks), 'graph break')}"


def break_parts(breaks: Sequence[BreakReason], root: str, see_all: str) -> tuple[Part, ...]:
    """Each graph break with its line and PyTorch's reason; nothing where there is none."""
    if not breaks:
        return ()
    blocks: list[Block] = []
    for number, reason in enumerate(breaks[:_MOST_BREAKS], 1):
        at = place(reason.file, reason.line, root) if reason.file else reason.function
        left = words(Span(at, "strong"), " ", Span(reason.source.strip(), "code"))
        times = f"{reason.count} times  " if reason.count > 1 else ""
        right = words(Span(times, "dim"), reason.gb_id or "")
        text = Paragraph(words(f"{reason.gb_type}: ", Span(reason.brief, "dim")))
        blocks.append(Item(str(number), left, right, (text,)))
    if len(breaks) > _MOST_BREAKS:
        blocks.append(note(f"and {len(breaks) - _MOST_BREAKS} more; {see_all}"))
    return (Part("breaks", "Graph breaks", tuple(blocks)),)


_LATENCY = (
    "The time of a check is measured once by PyTorch, at compile time with cold caches; "
    "`compilescope.GuardInspector` measures more."
)


def group_item(number: int, group: GuardGroup, root: str) -> Item:
    """The compilations of one function: what they share, and what differs between them."""
    first = group.graphs[0]
    item = guarded_item(number, first, root)
    blocks = [*item.blocks, *_latencies(group)]
    if len(group.graphs) == 1:
        return msgspec.structs.replace(item, blocks=tuple(blocks))
    compiled = count(len(group.graphs), "compilation")
    differ = bool(group.differences or group.extras)
    same = f"{compiled}, {count(group.same, 'guard')} in common" if differ else ""
    right = words(Span(same or f"{compiled}, same {count(first.guards, 'guard')}", "strong"))
    if differ:
        name = first.compile_id or "the first"
        blocks = [*_differences(group), note(f"the guards of {name}:"), *blocks]
    return msgspec.structs.replace(item, right=right, blocks=tuple(blocks))


def _latencies(group: GuardGroup) -> list[Block]:
    measured = [graph.latency_us for graph in group.graphs if graph.latency_us is not None]
    if not measured:
        return []
    low, high = min(measured), max(measured)
    return [note(f"a check takes {low} us" if low == high else f"a check takes {low} to {high} us")]


def _differences(group: GuardGroup) -> list[Block]:
    blocks: list[Block] = []
    for each in group.differences[:_MOST_DIFFERENCES]:
        values: list[str | Span] = []
        for value, names in each.values.items():
            values.append("; " if values else ": ")
            values += [Span(_clipped(value), "code"), f" in {_ids(names)}"]
        blocks.append(Paragraph(words(Span(each.source or each.kind, "code"), *values), "differs"))
    if len(group.differences) > _MOST_DIFFERENCES:
        blocks.append(note(f"and {len(group.differences) - _MOST_DIFFERENCES} more that differ"))
    for extra in group.extras[:_MOST_DIFFERENCES]:
        named = [source for source in extra.sources if source][:_MOST_SOURCES]
        listed = Span(", ".join(named) or "shapes", "code")
        more = len(extra.sources) - max(len(named), 1)
        rest = f" and {more} more" if more > 0 else ""
        text = words(f"{_ids(extra.compile_ids)}: ", listed, rest)
        blocks.append(Paragraph(text, "only in"))
    return blocks


def _clipped(value: str) -> str:
    return value if len(value) <= _MOST_LETTERS else value[: _MOST_LETTERS - 1] + "…"


def _ids(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_IDS} more" if len(names) > _MOST_IDS else ""
    return ", ".join(names[:_MOST_IDS]) + more


def graphs_document(title: str, graphs: Sequence[DynamoGraph], root: str) -> Document:
    """The graphs of a recorded run."""
    blocks: list[Block] = []
    if not graphs:
        blocks.append(Paragraph(words("No graph was captured.")))
    for number, graph in enumerate(graphs, 1):
        left = _where(graph.file, graph.line, graph.function, graph.resumed_at, root)
        right = words(f"{count(graph.ops or 0, 'op')}  {graph.compile_id or ''}")
        end = "ends at a graph break" if graph.ended_by_break else "runs to the end of the frame"
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
        blocks.append(note(f"{graph.elsewhere} without a line of yours: PyTorch's own state"))
    return Item(str(number), left, right, (*blocks, *rest))


def inspection_document(
    title: str,
    subtitle: str,
    entries: Iterable[tuple[GuardedGraph, GuardCost | None]],
    root: str,
    breaks: Sequence[BreakReason] = (),
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
                ("check, cold", words(_ns(cost.cold_ns), " with flushed caches")),
            )
        )
        rest = [facts, *_costly(cost), *_tree(cost)]
        blocks.append(guarded_item(number, graph, root, rest, _IN_PYTHON))
    parts = (
        *break_parts(breaks, root, "`.break_reasons` has them all"),
        Part("guards", "Guards" if breaks else "", tuple(blocks)),
        Part("measured", "How it was measured", (Paragraph(words(MEASURED)),)),
    )
    return Document(title, subtitle, parts)


MEASURED = (
    "Warm: the median over batches of checks of the whole guard tree, minus an empty tree measured "
    "in alternation. Cold: the median of PyTorch's own profiler, which flushes the caches before "
    "each check. Each part: two copies of the tree, one with the part and one with only the path "
    "to it, measured in alternation; the difference of their fastest batches. The remainder "
    "belongs to the root: global state, and guards that compare several values (no aliasing)."
)


def costliest(cost: GuardCost) -> list[GuardNode]:
    """Nodes by their own cost, dearest first."""
    measured = [node for node in cost.tree.walk() if node.own_ns]
    return sorted(measured, key=lambda node: -(node.own_ns or 0))


def _costly(cost: GuardCost) -> list[Block]:
    blocks: list[Block] = [Heading("Most expensive guards", "each value without those below it")]
    for node in costliest(cost)[:_MOST_COSTLY]:
        text = words(Span(node.source, "code"), Span(f"  {_kinds(node)}", "dim"))
        blocks.append(Paragraph(text, hanging=f"{_ns(node.own_ns):>8}"))
    if len(blocks) == 1:
        blocks.append(note("none above the noise of the measurement"))
    return blocks


def _tree(cost: GuardCost) -> list[Block]:
    blocks: list[Block] = [Heading("Guard tree", "each value with all below it")]
    rows = list(_rows(cost.tree, "", 0))
    for depth, name, node in rows[:_MOST_NODES]:
        lead = Span("│ " * min(depth, _MOST_DEPTH), "dim")
        kind = f"  {node.type.rsplit('.', 1)[-1]}" if node.type else ""
        text = words(lead, Span(name, "code"), kind, Span(f"  {_kinds(node)}", "dim"))
        blocks.append(Paragraph(text, hanging=f"{_ns(node.total_ns):>8}"))
    if len(rows) > _MOST_NODES:
        blocks.append(note(f"and {len(rows) - _MOST_NODES} more; see to_json()"))
    if cost.unmeasured:
        blocks.append(note(f"{count(cost.unmeasured, 'value')} not measured: out of time"))
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
    part = f" (from line {resumed_at})" if resumed_at else ""
    shown = place(file, line, root) if file else os.curdir
    return words(Span(shown, "strong"), f" {function}{part}")


def _ns(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value / 1000:.2f} us" if value >= 1000 else f"{value:.0f} ns"
