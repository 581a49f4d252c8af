"""The stages of graphs side by side, as much of them as a page can bear.

All graphs share one budget of characters, the small ones first: what a small graph does not need
is left to the large ones. A graph that agrees with an earlier one at every stage is shown once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compilescope.report.blocks import CodeLine, Pane
from compilescope.report.places import shown_path
from compilescope.rules.stages.collect import KERNELS, Stage, StagedGraph, shown_stages
from compilescope.rules.stages.panes import StageLine, StagePane, stage_panes, stage_title
from compilescope.rules.stages.reader import StageReader

BUDGET = 2_500_000
_LINE = 20
"""What a line costs beside its own characters."""
_LONGEST_LINE = 400
_WORTH_CUTTING = 4_000
"""A stage with less room than this is not begun."""
# What a reader looks at first is kept longest.
_FIRST = ("dynamo", "aot_inference", "aot_forward", KERNELS, "aot_backward", "post_grad")


@dataclass
class GraphText:
    """What is shown of a graph's text."""

    panes: tuple[Pane, ...] = ()
    left_out: list[str] = field(default_factory=list)
    """Titles of stages for which there was no room."""
    cut: bool = False
    """Some of what is shown was cut short."""
    twin: StagedGraph | None = None
    """An earlier graph that says the same at every stage."""


def graph_texts(
    graphs: Sequence[StagedGraph], reader: StageReader, budget: int = BUDGET
) -> dict[StagedGraph, GraphText]:
    seen: dict[tuple[str | None, ...], StagedGraph] = {}
    texts: dict[StagedGraph, GraphText] = {}
    costs: dict[StagedGraph, int] = {}
    for graph in graphs:
        twin = seen.setdefault(graph.texts, graph)
        texts[graph] = GraphText(twin=twin if twin is not graph else None)
        if twin is graph:
            costs[graph] = sum(reader.length(stage) for stage in shown_stages(graph))
    share = _share(costs.values(), budget)
    for graph, cost in costs.items():
        if cost:
            texts[graph] = _fit(graph, reader, min(cost, share))
    return texts


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
        text.cut = text.cut or cut
    text.panes = tuple(panes)
    return text


def _importance(stage: Stage) -> int:
    return _FIRST.index(stage.kind) if stage.kind in _FIRST else len(_FIRST)


def _pane(pane: StagePane, limit: int) -> tuple[Pane, bool]:
    lines: list[CodeLine] = []
    # Comments, tails and boilerplate are gone by now; kin and line ends come on top instead.
    left = limit * 2
    for number, line in enumerate(pane.lines):
        left -= len(line.text) + _LINE + 4 * len(line.kin)
        if left < 0:
            lines.append(CodeLine(f"⋯ {len(pane.lines) - number} more lines"))
            return Pane(pane.title, tuple(lines), pane.note), True
        lines.append(_line(line))
    return Pane(pane.title, tuple(lines), pane.note), False


def _line(line: StageLine) -> CodeLine:
    text = line.text
    if len(text) > _LONGEST_LINE:
        text = f"{text[:_LONGEST_LINE]} … {len(text) - _LONGEST_LINE} more characters"
    return CodeLine(text, line.kin, line.number)
