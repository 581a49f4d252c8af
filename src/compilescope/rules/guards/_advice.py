"""Remedies that several rules give."""

from __future__ import annotations

from compilescope.rules.guards._subjects import dynamo_name
from compilescope.rules.remedy import Remedy, config, judgement, source
from compilescope.rules.rule import Miss


def one_graph_each(miss: Miss) -> list[Remedy]:
    """For instances that differ by design and share one compiled function."""
    function = miss.frame.function
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


def keep_both(miss: Miss, what: str) -> Remedy:
    return judgement(
        f"Or leave it: `{miss.frame.function}` is compiled once for each {what}, and no more than that. Call it with "
        "each of them during warm-up if the wait matters."
    )
