"""Remedies that several rules give."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, config, judgement, source
from compilescope.rules.causes.rule import Miss
from compilescope.rules.guards._subjects import called, dynamo_name, line_of, member, named, uses


def one_graph_each(miss: Miss) -> list[Remedy]:
    """For instances that differ by design and share one compiled function."""
    function = called(miss)
    return [
        source(
            f"If it differs between instances: compile the module that holds them all instead of `{function}` of each. "
            "Every instance is then traced in its own place, in one compilation."
        ),
        source(
            "Or compile each instance with `torch.compile(..., isolate_recompiles=True)` (torch 2.13): as many "
            "compilations as now, but each instance keeps its own, and none uses up the recompile limit of another."
        ),
    ]


def make_variable(subject: str) -> list[Remedy]:
    """For an int that Dynamo would keep as a constant."""
    name = dynamo_name(subject)
    if not name:
        return []
    return [
        config(
            f'`torch.compiler.config.dynamic_sources = "{name}"` before the first call makes this one int a variable of '
            "the graph. It costs nothing where the number is only computed with; where a line needs it (a loop's "
            "`range`, an index into a list), it is a constant again."
        )
    ]


def where_the_number_is_needed(miss: Miss) -> list[Remedy]:
    """For an int in a loop's `range` or as an index; empty where the line does neither."""
    name, line = named(miss), line_of(miss)
    found = uses(miss, member(miss.cause.subject))
    few = judgement(
        f"Or keep to few values of `{name}`: each one is compiled once, up to the recompile limit."
    )
    if "range" in found:
        return [
            source(
                f"`{line}` is unrolled, one graph for each `{name}`, however it is compiled. Work on whole tensors over "
                f"`torch.arange({name})` instead, with `{name}` as an argument and `dynamic=True`."
            ),
            few,
        ]
    if "index" in found:
        return [
            source(
                f"Index a tensor by `{name}`, passed as an argument, with `dynamic=True`: there the place may vary. If `{line}` indexes a "
                "list or a tuple, each place is its own graph: stack it into a tensor, or pick the entry before the call "
                "and pass that."
            ),
            few,
        ]
    return []


def keep_both(miss: Miss, what: str) -> Remedy:
    return judgement(
        f"Or leave it: `{called(miss)}` is compiled once for each {what}, and no more than that. Call it with "
        "each of them during warm-up if the wait matters."
    )
