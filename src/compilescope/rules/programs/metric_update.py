"""A metric of torchmetrics is updated in compiled code."""

from __future__ import annotations

import ast

from compilescope.findings.finding import is_own
from compilescope.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.rules.programs._names import code, listed
from compilescope.source.outline import Function, body_nodes, dotted, names_in


def _applies(case: ProgramCase) -> bool:
    return "/torchmetrics/" in case.finding.file.replace("\\", "/")


def _words(case: ProgramCase) -> str:
    frame = next((each for each in reversed(case.traced) if is_own(each.file)), None)
    if frame is not None:
        function = case.function_around(frame.file, frame.line, frame.function)
    else:
        ref = case.compiled
        function = (
            case.function_around(ref.file, ref.line, ref.function) if ref is not None else None
        )
    if function is None:
        return ""
    updates = _updates(function)
    if not updates:
        return ""
    given = _given(function, updates)
    result = (
        f"return {listed(f'`{each}`' for each in given)} from `{function.name}` as well, and "
        if given
        else ""
    )
    lines = listed(code(each) for each in updates)
    return (
        f"Update metrics outside of what is compiled: they count in Python numbers and look at "
        f"values. For that, {result}do {lines} in the caller, after the call."
    )


def _updates(function: Function) -> list[ast.Call]:
    """Statements of the function that feed a metric and use nothing of what it gives."""
    statements = [node for node in body_nodes(function.node) if isinstance(node, ast.Expr)]
    calls = [each.value for each in statements if isinstance(each.value, ast.Call)]
    return [each for each in calls if dotted(each.func).endswith(".update")]


def _given(function: Function, updates: list[ast.Call]) -> list[str]:
    """What the function computes, does not return yet, and a metric needs."""
    nodes = body_nodes(function.node)
    made = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    returned: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            returned |= {each.id for each in parts if isinstance(each, ast.Name)}
    needed = [name for call in updates for each in call.args for name in sorted(names_in(each))]
    return list(dict.fromkeys(name for name in needed if name in made - returned))


RULE = ProgramRule(
    id="metric-update",
    order=15,
    applies=_applies,
    words=_words,
)
