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
        f"`{cause.text}` is a tensor: whether to raise is known only when the numbers are, and Dynamo "
        "traces without numbers."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    check = _check(cause)
    assert check is not None
    condition = shown(check.test)
    if isinstance(check, ast.Assert):
        holds, action = condition, "assert"
    else:
        holds, action = f"~({condition})", "raise"
    return [
        source(
            f'Check on the device instead: `torch._assert_async({holds}, "...")` is traced and still '
            f"stops the program. It wants one boolean tensor and a constant message."
        ),
        source(
            f"Or check in eager runs only: `if not torch.compiler.is_compiling():` around this {action}. "
            "Compiled runs then go unchecked."
        ),
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

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    y = x * 2
    torch._assert_async(~((y < 0).any()), "negative")
    return y + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def f(x):
    assert (x > 0).all(), x.shape
    return x + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    if not torch.compiler.is_compiling():
        assert (x > 0).all(), x.shape
    return x + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
