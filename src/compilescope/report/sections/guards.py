"""Guards: what every call of compiled code checks first, by kind and by compiled frame."""

from __future__ import annotations

from collections import Counter

from compilescope.report.blocks import Block, Fold, Paragraph, Table, note, words
from compilescope.report.guards import guarded_item
from compilescope.report.places import count
from compilescope.report.section import Reading, Section
from compilescope.rules.guarded import GuardedGraph, guarded_graphs

_MOST_KINDS = 30
_MOST_FRAMES = 200
_MOST_GUARDS = 8_000


def _build(reading: Reading) -> list[Block]:
    graphs = guarded_graphs(reading.run, _MOST_GUARDS)
    if not graphs:
        return []
    total = sum(graph.guards for graph in graphs)
    guards, frames = count(total, "guard"), count(len(graphs), "compiled frame")
    blocks: list[Block] = [Paragraph(words(f"{guards} of {frames}.")), _kinds(graphs)]
    shown = [
        guarded_item(number, graph, reading.root, _latency(graph))
        for number, graph in enumerate(graphs[: _most_frames(graphs)], 1)
    ]
    blocks.append(Fold(words("Each compiled frame, most guards first"), tuple(shown)))
    if len(graphs) > len(shown):
        rest = sum(graph.guards for graph in graphs[len(shown) :])
        left_out = count(len(graphs) - len(shown), "frame")
        blocks.append(
            note(
                f"{left_out} with {count(rest, 'guard')} in all left out; "
                "`compilescope analyze --type guards --json` has every guard."
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
    return Table(("kind", "guards", "share", "frames"), tuple(rows), (1, 2, 3))


def _latency(graph: GuardedGraph) -> list[Block]:
    if graph.latency_us is None:
        return []
    return [note(f"a check took {graph.latency_us} us with cold caches, measured once by torch")]


SECTION = Section("guards", 75, _build, "Guards", "what every call checks", in_summary=False)
