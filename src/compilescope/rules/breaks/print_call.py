"""`print` inside compiled code."""

from __future__ import annotations

import ast

from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.remedy import Remedy, config, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("builtin operator `print`", "builtin print")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` must write when the line is reached; a graph has no such moment, so Dynamo cuts "
        "the graph in two and prints between."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    remedies = [
        source(
            f"Take `{cause.text}` out of the compiled code, or keep it for eager runs: put it under "
            "`if not torch.compiler.is_compiling():`."
        )
    ]
    if _reorderable(cause.spot.expression):
        remedies.append(
            config(
                "`torch._dynamo.config.reorderable_logging_functions.add(print)`: the print then happens "
                "after the graph, so lines may come later and in another order."
            )
        )
    return remedies


def _reorderable(call: ast.AST | None) -> bool:
    """torch 2.13 drops `end=` and cannot move a print of sizes: don't offer what won't work."""
    if not isinstance(call, ast.Call) or called(call) != "print" or call.keywords:
        return False
    return all(isinstance(part, (ast.Constant, ast.Name)) for part in call.args)


RULE = BreakRule(
    id="print-call",
    category="logging",
    order=35,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    y = x + 1
    print("step", y)
    return y * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            good="""import torch

def f(x):
    y = x + 1
    if not torch.compiler.is_compiling():
        print("step", y)
    return y * 2

torch.compile(f, backend="eager")(torch.ones(3))
""",
            configured="""import torch

def f(x):
    y = x + 1
    print("step", y)
    return y * 2

with torch._dynamo.config.patch(reorderable_logging_functions={print}):
    torch.compile(f, backend="eager")(torch.ones(3))
""",
        ),
    ),
)
