"""An optimizer's compiled function is compiled once for each shape of parameter, and that ends."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.recompiles._subjects import size_of
from compilescope.knowledge.source.outline import Function, dotted

_RULES = frozenset(
    {"equal-sizes", "rank-change", "shape-condition", "size-change", "size-zero-one"}
)


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if not isinstance(finding, RecompileFinding) or case.rule not in _RULES:
        return False
    return not finding.limit_hit and (
        case.rule == "rank-change" or size_of(finding.subject) is not None
    )


def _words(case: ProgramCase) -> str:
    caller, ref = case.caller, case.compiled
    if caller is None or ref is None:
        return ""
    step = case.function_around(caller.file, caller.line, caller.function)
    if step is None or not _is_of_optimizer(case, step):
        return ""
    return (
        f"Leave it: `{ref.function}` is called for one parameter after the other, and is compiled for "
        "their shapes in the first step; later steps reuse that. What would save some of it is to "
        "stack parameters of one shape and call it once for all of them."
    )


def _is_of_optimizer(case: ProgramCase, step: Function) -> bool:
    """A method of a torch.optim.Optimizer of the user's, which goes over its parameters."""
    if step.owner is None:
        return False
    bases = {dotted(each).rpartition(".")[2] for each in step.owner.bases}
    return "Optimizer" in bases and any(
        isinstance(node, ast.Attribute) and node.attr == "param_groups"
        for node in ast.walk(step.node)
    )


RULE = ProgramRule(
    id="optimizer-shapes",
    order=45,
    applies=_applies,
    words=_words,
)
