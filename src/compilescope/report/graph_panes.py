"""The stages of graphs side by side, as much of them as a page can bear, and what to say of each.

All graphs share one budget of characters, the small ones first: what a small graph does not need
is left to the large ones. Graphs that agree at every stage are shown once. In words there are a
graph's figures, and which of its stages are not there and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.analysis.stages.panes import (
    GraphFigures,
    StagePane,
    stage_panes,
    stage_title,
)
from compilescope.knowledge.analysis.stages.reader import StageReader
from compilescope.knowledge.analysis.stages.staged_graphs import (
    KERNELS,
    Stage,
    StagedGraph,
    order_stages,
    shown_stages,
)
from compilescope.record.bodies import KernelEmitted
from compilescope.record.graphs.statistics import Amount, GraphStatistics
from compilescope.report.blocks import CodeLine, Pane, Words, words
from compilescope.report.places import count, shown_bytes, shown_flops, shown_path

BUDGET = 12_000_000
"""Characters of all stages on one page. Chosen: they are packed; benchmarks/page_size.py shows how
large the page is and how quickly it opens."""
_LINE = 20
"""What a line costs beside its own characters. Chosen, for the markup around it."""
_LONGEST_LINE = 400
"""Chosen: far beyond what a pane shows without scrolling; a note says how much is missing."""
_WORTH_CUTTING = 4_000
"""A stage with less room than this is not begun. Chosen: less than a screen of code tells
little."""
_WORTH_FOLDING = 4
"""Fewer inputs than this take less room than what it takes to say so. Chosen."""
# What a reader looks at first is kept longest.
_FIRST = ("dynamo", "aot_inference", "aot_forward", KERNELS, "aot_backward", "post_grad")
_NUMBERED = late(r"# AOT ID: .*\n")
"""Inductor's count of the graphs of a process: all that tells the code of equal graphs apart."""


class GraphText(msgspec.Struct):
    """What is shown of a graph's text."""

    panes: tuple[Pane, ...] = ()
    left_out: list[str] = msgspec.field(default_factory=list)
    """Titles of stages for which there was no room."""
    cut: list[str] = msgspec.field(default_factory=list)
    """Titles of stages that are shown in part."""


def equal_graphs(graphs: Iterable[StagedGraph], reader: StageReader) -> list[list[StagedGraph]]:
    """Graphs with the same code at every stage, together; in the order of their first."""
    alike: dict[tuple[object, ...], list[StagedGraph]] = {}
    for graph in graphs:
        # A graph without text is like no other: nothing shows that it is.
        known = any(stage.text for stage in graph.stages)
        alike.setdefault(_kept(graph) if known else (id(graph),), []).append(graph)
    groups: dict[tuple[object, ...], list[StagedGraph]] = {}
    for key, members in alike.items():
        for graph in members:
            code = _kernels(graph, reader) if len(members) > 1 else ()
            groups.setdefault((key, code), []).append(graph)
    order = {graph: number for number, graph in enumerate(graphs)}
    return sorted(groups.values(), key=lambda members: order[members[0]])


def _kept(graph: StagedGraph) -> tuple[object, ...]:
    """Text of the same name is the same text; that of kernels is read only where it decides."""
    return tuple(
        (stage.kind, stage.direction, stage.text if stage.kind != KERNELS else None)
        for stage in graph.stages
    )


def _kernels(graph: StagedGraph, reader: StageReader) -> tuple[str, ...]:
    return tuple(_NUMBERED.sub("", reader.text(stage), count=1) for stage in graph.of(KERNELS))


def graph_texts(
    graphs: Sequence[StagedGraph], reader: StageReader, budget: int = BUDGET
) -> dict[StagedGraph, GraphText]:
    costs = {graph: sum(reader.length(stage) for stage in shown_stages(graph)) for graph in graphs}
    share = _share(costs.values(), budget)
    return {
        graph: _fit(graph, reader, min(cost, share)) if cost else GraphText()
        for graph, cost in costs.items()
    }


def _share(costs: Iterable[int], budget: int) -> int:
    """The largest share at which all fit: who needs less leaves the rest to the others."""
    waiting = sorted(costs)
    while waiting:
        share = budget // len(waiting)
        if waiting[0] > share:
            return share
        budget -= waiting.pop(0)
    return budget


def _fit(graph: StagedGraph, reader: StageReader, room: int) -> GraphText:
    text = GraphText()
    chosen: list[Stage] = []
    limits: dict[str, int] = {}
    for stage in sorted(shown_stages(graph), key=_importance):
        needs = reader.length(stage)
        if needs > room and room < _WORTH_CUTTING and chosen:
            text.left_out.append(stage_title(stage))
            continue
        chosen.append(stage)
        limits[stage_title(stage)] = max(min(needs, room), _WORTH_CUTTING)
        room = max(0, room - needs)
    panes: list[Pane] = []
    root = reader.run.header.root
    for pane in stage_panes(graph, chosen, reader, lambda file: shown_path(file, root)):
        shown, cut = _pane(pane, limits.get(pane.title, 2 * _WORTH_CUTTING))
        panes.append(shown)
        text.cut += [pane.title] if cut else []
    text.panes = tuple(panes)
    return text


def _importance(stage: Stage) -> int:
    return _FIRST.index(stage.kind) if stage.kind in _FIRST else len(_FIRST)


def _pane(pane: StagePane, limit: int) -> tuple[Pane, bool]:
    lines: list[CodeLine] = []
    # Comments, tails and boilerplate are gone by now; kin and line ends come on top instead.
    left = limit * 2
    for part, members in groupby(pane.lines, key=attrgetter("part")):
        run = list(members)
        fold = part if len(run) >= _WORTH_FOLDING else ""
        for line in run:
            text, kin = line.text, line.kin
            letters = len(text)
            left -= letters + _LINE + len(kin)
            if left < 0:
                lines.append(CodeLine(f"⋯ {len(pane.lines) - len(lines)} more lines"))
                return Pane(pane.title, tuple(lines), pane.note), True
            if letters > _LONGEST_LINE:
                text = f"{text[:_LONGEST_LINE]} … {letters - _LONGEST_LINE} more characters"
            lines.append(CodeLine(text, kin, line.number, fold))
    return Pane(pane.title, tuple(lines), pane.note), False


_MOST_NAMES = 10
"""Operators of a graph. Chosen: the most frequent ones tell what it is; the rest is counted."""


def figure_rows(graph: StagedGraph, figures: GraphFigures) -> Iterable[tuple[str, Words]]:
    seen = figures.caught
    if seen is not None:
        yield "Ops", words(_counted(seen.by_op))
        yield "Memory", words(_memory(seen))
        devices = f" on {', '.join(seen.devices)}" if seen.devices else ""
        if seen.dtypes:
            yield "Dtypes", words(_counted(seen.dtypes) + devices)
    if figures.forward:
        yield "FLOPs", words(_flops(figures))
    yield "Stages", words(" → ".join(_stages(graph, figures)))


def missing_stages(graph: StagedGraph) -> Iterable[str]:
    """Sentences about stages that a reader would look for and not find."""
    kinds = {stage.kind for stage in graph.stages}
    backend = (graph.body.backend if graph.body is not None else None) or "the backend"
    aot = any(kind.startswith("aot_") for kind in kinds)
    if "dynamo" not in kinds:
        yield "Dynamo's own graph was not recorded: source lines come from later stages."
    if "dynamo" in kinds and not aot and "post_grad" not in kinds:
        yield f"No later stage was recorded: {backend} doesn't use AOTAutograd, or hasn't yet."
    elif KERNELS not in kinds and backend == "inductor":
        yield "No kernels were recorded: Inductor didn't get that far, or ran in another process."
    elif KERNELS not in kinds:
        yield f"No kernels were recorded: {backend} doesn't seem to use Inductor."
    compiled = {stage.direction for stage in graph.of(KERNELS)}
    if "aot_backward" in kinds and "forward" in compiled and "backward" not in compiled:
        yield "The backward graph was not compiled: that happens on the first call to backward()."
    if graph.cached:
        yield (
            "Loaded from torch's on-disk cache, which stores only code: stages are matched by "
            "source line, not by node, and C++ kernels don't say what they compute."
        )


def _counted(names: Mapping[str, int]) -> str:
    shown = [f"{name} {times}" for name, times in list(names.items())[:_MOST_NAMES]]
    rest = len(names) - _MOST_NAMES
    return (", ".join(shown) + (f" and {rest} more kinds" if rest > 0 else "")) or "none"


def _memory(seen: GraphStatistics) -> str:
    parts = [("inputs", seen.inputs)]
    if seen.parameters is not None:
        parts.append(("parameters and buffers", seen.parameters))
    parts += [("intermediates", seen.intermediates), ("outputs", seen.outputs)]
    return ", ".join(f"{name} {shown_bytes(amount)}" for name, amount in parts)


def _flops(figures: GraphFigures) -> str:
    passes = [_pass("forward", figures.forward)]
    if figures.backward:
        passes.append(_pass("backward", figures.backward))
    inner = sum(part.subgraphs for part in (*figures.forward, *figures.backward))
    once = f"; {count(inner, 'subgraph')}, each counted once" if inner else ""
    return ", ".join(passes) + once


def _pass(name: str, parts: tuple[GraphStatistics, ...]) -> str:
    total = sum((part.flops for part in parts), Amount())
    counted, ops = sum(part.counted_ops for part in parts), sum(part.ops for part in parts)
    if not counted:
        return f"{name} none ({count(ops, 'op')}, no counted kind)"
    unknown = f", {total.unknown} of unknown size" if total.unknown else ""
    return f"{name} {shown_flops(total)} ({counted} of {count(ops, 'op')} counted{unknown})"


def _stages(graph: StagedGraph, figures: GraphFigures) -> Iterable[str]:
    known = dict(figures.stages)
    for stage in order_stages(shown_stages(graph)):
        if isinstance(stage.event.body, KernelEmitted):
            yield f"{len(stage.event.body.kernels)} {stage_title(stage).lower()}"
            continue
        seen = known.get(stage)
        ops = seen.ops if seen is not None else getattr(stage.event.body, "ops", None)
        yield f"{stage_title(stage)}" + (f" {count(ops, 'op')}" if ops is not None else "")
