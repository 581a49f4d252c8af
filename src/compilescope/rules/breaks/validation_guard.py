"""A check that raises: `if bad: raise`, or an `assert`, whose condition is a tensor."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _check(cause: Cause) -> ast.If | ast.Assert | None:
    statement = cause.spot.statement
    if isinstance(statement, ast.Assert):
        return statement
    if (
        isinstance(statement, ast.If)
        and statement.body
        and isinstance(statement.body[-1], ast.Raise)
    ):
        return statement
    return None


def _applies(cause: Cause) -> bool:
    return cause.says("Data-dependent branching", "data-dependent") and _check(cause) is not None


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` is a tensor: whether to raise depends on its values, and Dynamo traces "
        "without values."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    check = _check(cause)
    assert check is not None
    return [
        source(
            f"Check in the caller: test `{shown(check.test)}` before calling `{cause.function}`, "
            "or return that tensor and raise after the call."
        )
    ]


RULE = BreakRule(
    id="validation-guard",
    category="validation-guard",
    order=10,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    y = x * 2
    if (y < 0).any():
        raise ValueError("negative")
    return y + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import torch

def f(x):
    y = x * 2
    return y + 1, (y < 0).any()

result, negative = torch.compile(f, backend="eager")(torch.ones(3))
if negative:
    raise ValueError("negative")
print(result)
""",
        ),
        Example(
            bad="""import torch

def f(x):
    assert (x > 0).all(), x.shape
    return x + 1

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import torch

def f(x):
    return x + 1

x = torch.ones(3)
assert (x > 0).all(), x.shape
print(torch.compile(f, backend="eager")(x))
""",
        ),
    ),
)
