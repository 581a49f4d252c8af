"""Operators whose output size depends on the numbers: masks, nonzero, unique."""

from __future__ import annotations

import ast
import re

from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example

_OPERATOR = re.compile(r"aten\.(\w+)")


def _applies(cause: Cause) -> bool:
    return cause.says("Dynamic shape operator", "Dynamic slicing with Tensor")


def _operator(cause: Cause) -> str:
    match = _OPERATOR.search(cause.site.context) or _OPERATOR.search(cause.site.explanation)
    return match.group(1) if match else "the operator"


def _why(cause: Cause) -> str:
    return (
        f"How many elements `{cause.text}` gives depends on the numbers in it (operator "
        f"{_operator(cause)}), so the graph cannot know the size of what follows."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    node = cause.spot.expression
    remedies = []
    if isinstance(node, ast.Subscript):
        value, mask = shown(node.value), shown(node.slice)
        remedies.append(
            source(
                f"Keep the size: `torch.where({mask}, {value}, 0)` (or `{value} * ({mask})`) leaves the "
                "elements that are out at zero, which sums and means over a count can live with."
            )
        )
    elif "nonzero" in cause.text or "argwhere" in cause.text:
        remedies.append(
            source(
                f"If `{cause.text}` only feeds an index, use the mask itself with `torch.where`; if its "
                "length is bounded, `torch.nonzero_static(..., size=N)` has a known size."
            )
        )
    remedies.append(
        config(
            "`torch._dynamo.config.capture_dynamic_output_shape_ops = True` keeps it in the graph with an "
            "unknown size. What follows must not ask for that size in a branch or a loop."
        )
    )
    return remedies


RULE = BreakRule(
    id="dynamic-shape",
    category="dynamic-shape-operator",
    order=45,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    picked = x[x > 0]
    return picked.sum() * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    picked = torch.where(x > 0, x, 0)
    return picked.sum() * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            configured="""import torch

def f(x):
    picked = x[x > 0]
    return picked.sum() * 2

with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def f(x):
    return (x > 0).nonzero() + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    return torch.nonzero_static(x > 0, size=3) + 1

torch.compile(f, backend="eager")(torch.ones(3))
""",
            configured="""import torch

def f(x):
    return (x > 0).nonzero() + 1

with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
