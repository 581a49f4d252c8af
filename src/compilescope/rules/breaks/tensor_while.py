"""A loop that goes on while a tensor says so."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import assigned_names, shown
from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("Data-dependent branching") and isinstance(cause.spot.statement, ast.While)


def _why(cause: Cause) -> str:
    return f"How often the loop runs depends on the value of `{cause.text}`, which tracing does not have."


def _remedies(cause: Cause) -> list[Remedy]:
    loop = cause.spot.statement
    assert isinstance(loop, ast.While)
    carried = ", ".join(assigned_names(loop.body)) or "x"
    return [
        source(
            f"Use `torch._higher_order_ops.while_loop(lambda {carried}: {shown(loop.test)}, body, "
            f"({carried},))`, where `body` takes and returns {carried}."
        ),
        judgement(
            "Or run a fixed number of steps and freeze what is done with `torch.where`, if there is an "
            "upper bound that you can afford."
        ),
    ]


RULE = BreakRule(
    id="tensor-while",
    category="data-dependent-branch",
    order=20,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    while x.abs().max() > 1:
        x = x / 2
    return x + 1

torch.compile(f, backend="eager")(torch.full((3,), 4.0))
""",
            good="""import torch
from torch._higher_order_ops import while_loop

def f(x):
    (x,) = while_loop(lambda x: x.abs().max() > 1, lambda x: (x / 2,), (x,))
    return x + 1

torch.compile(f, backend="eager")(torch.full((3,), 4.0))
""",
        ),
    ),
)
