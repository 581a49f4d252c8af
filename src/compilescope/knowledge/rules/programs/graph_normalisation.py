"""torch_geometric adds self loops and normalises the edges anew in each call."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code, listed
from compilescope.knowledge.source.outline import dotted

_FUNCTIONS = ("gcn_norm", "add_remaining_self_loops")


def _applies(case: ProgramCase) -> bool:
    if isinstance(case.finding, RecompileFinding) or not case.passes("torch_geometric"):
        return False
    return any(each.function in _FUNCTIONS for each in case.stack)


def _words(case: ProgramCase) -> str:
    if not any(each.function == "gcn_norm" for each in case.stack):
        return ""
    layers = [call for call in _made(case) if not any(k.arg == "cached" for k in call.keywords)]
    if not layers:
        return ""
    lines = listed(code(_without(each)) for each in layers)
    return (
        "The layers normalise the edges in each call, and how many edges that gives depends on "
        "values. For a graph that stays the same, do it once, before the compiled call: "
        "`data = GCNNorm()(data)` of torch_geometric.transforms, pass `data.edge_weight` to the "
        f"layers as well, and make them {lines}."
    )


def _made(case: ProgramCase) -> list[ast.Call]:
    return [
        call
        for outline in case.outlines
        for call, _ in outline.calls
        if dotted(call.func).rpartition(".")[2] == "GCNConv"
    ]


def _without(call: ast.Call) -> str:
    given = [ast.unparse(each) for each in (*call.args, *call.keywords)]
    return f"{dotted(call.func)}({', '.join([*given, 'normalize=False'])})"


RULE = ProgramRule(
    id="graph-normalisation",
    order=80,
    applies=_applies,
    words=_words,
)
