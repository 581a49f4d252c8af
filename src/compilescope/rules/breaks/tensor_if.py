"""A branch on the value of a tensor."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import (
    assigned_names,
    shown,
    single_assignment,
    single_return,
)
from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("Data-dependent branching", "guard on data-dependent expression")


def _why(cause: Cause) -> str:
    return (
        f"Which way to go depends on the value of `{cause.text}`. Dynamo traces without values, so it "
        "cannot know which branch belongs into the graph."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    where = _where(cause)
    remedies = [source(where)] if where else []
    statement = cause.spot.statement
    condition = cause.text
    if isinstance(statement, ast.If):
        names = ", ".join(assigned_names(statement.body, statement.orelse)) or "the result"
        remedies.append(
            source(
                f"{'Or keep' if remedies else 'Keep'} one branch from running with `torch.cond({condition}, "
                f"when_true, when_false, (...))`: two functions that take the tensors they use and return "
                f"{names}, of the same shapes and dtypes."
            )
        )
    remedies.append(
        judgement(
            f"If `{condition}` is really a setting (a step count, a flag), keep it as a Python number: "
            "then it is a guard and costs a recompile per value, not a break per call."
        )
    )
    return remedies


def _where(cause: Cause) -> str:
    """The branch as one expression, where both sides assign or return the same thing."""
    node = cause.spot.statement
    conditional = cause.spot.enclosing(ast.IfExp)
    if isinstance(conditional, ast.IfExp):
        picked = _call(shown(conditional.test), conditional.body, conditional.orelse)
        return f"Compute both and pick: `{picked}` instead of `{shown(conditional)}`."
    if not isinstance(node, ast.If) or node.test is not cause.spot.expression:
        return ""
    condition = shown(node.test)
    then = single_assignment(node.body)
    if then is not None:
        name, value = then
        other = (
            single_assignment(node.orelse) if node.orelse else (name, ast.Name(name, ast.Load()))
        )
        # A flag or a text that only the branch sets is no tensor: nothing to pick between.
        if other is not None and other[0] == name and not isinstance(value, ast.Constant):
            picked = f"{name} = {_call(condition, value, other[1])}"
            return f"Compute both and pick: `{picked}` instead of the `if`."
    returned, otherwise = single_return(node.body), single_return(node.orelse)
    if returned is not None and otherwise is not None:
        return f"Compute both and pick: `return {_call(condition, returned, otherwise)}`."
    return ""


def _call(condition: str, then: ast.expr, other: ast.expr) -> str:
    return f"torch.where({condition}, {shown(then)}, {shown(other)})"


RULE = BreakRule(
    id="tensor-if",
    category="data-dependent-branch",
    order=30,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    y = x.sin()
    if y.sum() > 0:
        y = y * 2
    else:
        y = y - 1
    return y + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    y = x.sin()
    y = torch.where(y.sum() > 0, y * 2, y - 1)
    return y + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def f(x):
    if x.sum() > 0:
        y = x * 2
        z = y + 1
    else:
        y = x - 1
        z = y * 3
    return y + z

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def when_true(x):
    y = x * 2
    return y, y + 1

def when_false(x):
    y = x - 1
    return y, y * 3

def f(x):
    y, z = torch.cond(x.sum() > 0, when_true, when_false, (x,))
    return y + z

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
