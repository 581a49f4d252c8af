"""What there is to say of one graph: its figures, and which of its stages are not there and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from compilescope.analysis.stages.figures import GraphFigures
from compilescope.analysis.stages.panes import stage_title
from compilescope.analysis.stages.staged_graphs import (
    KERNELS,
    StagedGraph,
    order_stages,
    shown_stages,
)
from compilescope.graphs.statistics import Amount, GraphStatistics
from compilescope.model.bodies import KernelEmitted
from compilescope.report.amounts import shown_bytes, shown_flops
from compilescope.report.blocks import Words, words
from compilescope.report.places import count

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
