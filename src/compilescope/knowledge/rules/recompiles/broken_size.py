"""A size that depends on the data: the graph broke where it was made, and the rest has it as an
input."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, cut, is_path, shown, size_of

_BY_DATA = frozenset(("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"))
"""Functions and methods of torch whose result has as many elements as the data says."""


def _applies(miss: RecompileCase) -> bool:
    code, found = miss.finding.compiled, size_of(miss.finding.subject)
    return code.resumed_at is not None and found is not None and _made_at(miss) is not None


def _made_at(miss: RecompileCase) -> int | None:
    """The line that makes the tensor: the break's own, or an earlier one that a mask is used on."""
    tensor, _ = size_of(miss.finding.subject) or ("", 0)
    resumed_at = miss.finding.compiled.resumed_at or 0
    if not is_path(tensor):
        return resumed_at
    function = miss.spot.function
    if function is None or not tensor.isidentifier():
        return None
    made = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and tensor in _names(node)
    ]
    if len(made) != 1 or made[0].lineno > resumed_at:
        return None
    value = made[0].value
    return made[0].lineno if value is not None and _is_by_data(value) else None


def _names(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    every = (each for target in targets for each in ast.walk(target))
    return {each.id for each in every if isinstance(each, ast.Name)}


def _is_by_data(value: ast.expr) -> bool:
    """A tensor of a mask (`x[x > 0]`, `x[~done]`), or of one of torch's searches."""
    if isinstance(value, ast.Subscript):
        parts = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
        return any(
            isinstance(part, ast.Compare)
            or (isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert))
            for part in parts
        )
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _BY_DATA


def _why(miss: RecompileCase) -> str:
    tensor, dim = size_of(miss.finding.subject) or ("", 0)
    was, now = cut(miss.finding.expected), cut(miss.finding.actual)
    sizes = f"it was {was} and is {now}" if was and was != now else f"it is {now}"
    return (
        f"How long `{shown(tensor)}` is in dimension {dim} depends on the data: {sizes}. "
        f"`{called(miss)}` breaks at line {_made_at(miss)}, where it is made, and what follows is "
        "compiled with that size as one of its inputs."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, _ = size_of(miss.finding.subject) or ("", 0)
    made, resumed = _made_at(miss), miss.finding.compiled.resumed_at
    which = f"break at line {made}: without it"
    if resumed != made:
        which = f"breaks at lines {made} and {resumed}: without them"
    return [
        judgement(
            f"Fix the graph {which}, there is no rest of `{called(miss)}` that has the size as an "
            "input."
        ),
        source(
            "Let the graph hold sizes that it does not know: "
            "`torch._dynamo.config.capture_dynamic_output_shape_ops = True`. Or keep all of it in "
            f"place of `{shown(tensor)}` and put zeros where the mask says no, if what follows "
            "can do without the size."
        ),
    ]


RULE = GuardRule(
    id="broken-size",
    order=205,
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
