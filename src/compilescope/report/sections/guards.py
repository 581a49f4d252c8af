"""Guards: what every call of compiled code checks first, by kind and by compiled function."""

from __future__ import annotations

from collections import Counter

from compilescope.knowledge.analysis.guarded_graphs import (
    GuardedGraph,
    guard_groups,
    guarded_graphs,
)
from compilescope.report.blocks import Block, Fold, Paragraph, Table, note, words
from compilescope.report.guards import group_item
from compilescope.report.places import count
from compilescope.report.section import Reading, Section

# Chosen: it bounds what is read and drawn of a run with many guards; a note says what is left out,
# and JSON has every guard.
_MOST_KINDS = 30
_MOST_FRAMES = 200
_MOST_GUARDS = 8_000


def _build(reading: Reading) -> list[Block]:
    graphs = guarded_graphs(reading.run, _MOST_GUARDS)
    if not graphs:
        return []
    total = sum(graph.guards for graph in graphs)
    guards, frames = count(total, "guard"), count(len(graphs), "compilation")
    blocks: list[Block] = [Paragraph(words(f"{guards} of {frames}.")), _kinds(graphs)]
    most = _most_frames(graphs)
    shown = [
        group_item(number, group, reading.root)
        for number, group in enumerate(guard_groups(graphs[:most]), 1)
    ]
    blocks.append(Fold(words("Each compiled function, most guards first"), tuple(shown)))
    if len(graphs) > most:
        rest = sum(graph.guards for graph in graphs[most:])
        left_out = count(len(graphs) - most, "compilation")
        blocks.append(
            note(
                f"{left_out} with {count(rest, 'guard')} not shown; "
                "`compilescope show --section guards --json` has every guard."
            )
        )
    return blocks


def _most_frames(graphs: list[GuardedGraph]) -> int:
    """As many as the guards that were read belong to."""
    left = _MOST_GUARDS
    for number, graph in enumerate(graphs[:_MOST_FRAMES]):
        if left <= 0:
            return number
        left -= graph.guards
    return _MOST_FRAMES


def _kinds(graphs: list[GuardedGraph]) -> Table:
    guards: Counter[str] = Counter()
    frames: Counter[str] = Counter()
    for graph in graphs:
        guards.update(graph.kinds)
        frames.update(graph.kinds.keys())
    total = guards.total()
    ranked = guards.most_common()
    rows = [
        (
            words(kind),
            words(str(times)),
            words(f"{100 * times / total:.0f} %"),
            words(str(frames[kind])),
        )
        for kind, times in ranked[:_MOST_KINDS]
        if total
    ]
    rest = ranked[_MOST_KINDS:]
    if rest:
        times = sum(number for _, number in rest)
        label = words(count(len(rest), "other kind"))
        rows.append((label, words(str(times)), words(f"{100 * times / total:.0f} %"), words("")))
    return Table(("kind", "guards", "share", "compilations"), tuple(rows), (1, 2, 3))


SECTION = Section("guards", 75, _build, "Guards", "what every call checks", in_summary=False)
