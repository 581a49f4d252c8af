"""Links within a report: from bars and cells to the item that explains them, from causes and tables
to their lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.stages.staged_graphs import StagedGraph
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.compile_ids import CompileKey, compile_key
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.recompiles import RecompiledFrame
from compilescope.record.bodies import Recompile
from compilescope.report.blocks import Block, Item, Part, SourceFile, Table, Words
from compilescope.report.places import item_anchor
from compilescope.report.section import Reading
from compilescope.report.sections.graphs import drawn_graphs, graph_anchor

_Cause = FailureFinding | RecompiledFrame | BreakFinding | EagerFinding
_Item = _Cause | StagedGraph


class Targets(msgspec.Struct, frozen=True):
    """Anchors of items that the report really has. Each is written when it is asked for: of a
    hundred thousand a page links to a few hundred."""

    items: list[_Item]
    """Those that cost most first."""
    events: dict[str, int]
    """By event id: the number of the item."""
    compilations: dict[CompileKey, int]
    recompiled: set[CompileKey]

    def of_event(self, event_id: str) -> str:
        return self._anchor(self.events.get(event_id))

    def of_compilation(self, key: CompileKey | None) -> str:
        return self._anchor(self.compilations.get(key)) if key is not None else ""

    def _anchor(self, number: int | None) -> str:
        return _anchor(self.items[number]) if number is not None else ""


def targets(reading: Reading) -> Targets:
    """Of several items the one that costs most leads: a failure, a recompile, a graph break."""
    seen = reading.digest
    items: list[_Item] = []
    ranked: dict[str, int] = {}
    """By event id."""
    firsts: list[int] = []
    """The number of the first item of each kind."""
    kinds: list[Sequence[_Cause]]
    kinds = [seen.failures, seen.recompiles, seen.sites, seen.eager_frames]
    for kind in kinds:
        firsts.append(len(items))
        for number, item in enumerate(kind, len(items)):
            for event_id in item.because:
                ranked.setdefault(event_id, number)
        items += kind
    chosen: dict[CompileKey, int] = {}
    recompiled = set()
    for event in reading.run.events:
        found = ranked.get(event.id)
        again = type(event.body) is Recompile
        if event.compile_id is None or (found is None and not again):
            continue
        key = compile_key(event, event.compile_id)
        if key is None:
            continue
        if again:
            recompiled.add(key)
        if found is None:
            continue
        # Of several of a kind the first event's leads.
        before = chosen.get(key)
        if before is None or bisect_right(firsts, found) < bisect_right(firsts, before):
            chosen[key] = found
    for graph in drawn_graphs(reading):
        key = compile_key(graph.event, graph.event.compile_id)
        if key is not None and key not in chosen:
            chosen[key] = len(items)
            items.append(graph)
    return Targets(items, ranked, chosen, recompiled)


def _anchor(item: _Item) -> str:
    match item:
        case FailureFinding():
            return item_anchor("failure", item.because)
        case RecompiledFrame():
            return item_anchor("recompile", item.because)
        case BreakFinding():
            return item.fingerprint
        case EagerFinding():
            return f"eager-{item.because[0]}"
    return graph_anchor(item)


_LINE = "line "
"""What the target of a line begins with, as long as nobody knows where it is shown."""


def line_target(file: str, line: int) -> str:
    """Of a span in a table: it leads to the line, where that is shown, else nowhere."""
    return f"{_LINE}{file}:{line}"


def with_lines(parts: Iterable[Part]) -> list[Part]:
    """The place that an item begins with leads to its line, where that is shown; so do spans of
    tables whose target is a line."""
    found = list(parts)
    anchors = {
        item: f"line-{block.number}-{line}"
        for part in found
        for block in part.blocks
        if isinstance(block, SourceFile)
        for item, line in block.links.items()
    }
    return [
        msgspec.structs.replace(part, blocks=tuple(_linked(each, anchors) for each in part.blocks))
        for part in found
    ]


def _linked(block: Block, anchors: dict[str, str]) -> Block:
    if isinstance(block, Table):
        return _linked_table(block, anchors)
    if not isinstance(block, Item) or block.anchor not in anchors or not block.left:
        return block
    place, *rest = block.left
    if place.target or place.url:
        return block
    place = msgspec.structs.replace(place, target=anchors[block.anchor])
    return msgspec.structs.replace(block, left=(place, *rest))


def _linked_table(block: Table, anchors: dict[str, str]) -> Table:
    if not any(
        span.target.startswith(_LINE) for row in block.rows for cell in row for span in cell
    ):
        return block
    rows = tuple(tuple(_linked_words(cell, anchors) for cell in row) for row in block.rows)
    return msgspec.structs.replace(block, rows=rows)


def _linked_words(cell: Words, anchors: dict[str, str]) -> Words:
    return tuple(
        msgspec.structs.replace(span, target=anchors.get(span.target, ""))
        if span.target.startswith(_LINE)
        else span
        for span in cell
    )
