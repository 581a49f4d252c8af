"""A branch on the value of a tensor."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("Data-dependent branching", "guard on data-dependent expression")


def _why(cause: Cause) -> str:
    return (
        f"The branch depends on the value of `{cause.text}`. Dynamo traces without values, so it "
        "can't know which side to put in the graph."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    # A comprehension has a name of Python's own.
    named = not cause.function.startswith("<")
    function = f"`{cause.function}`" if named else "the function around it"
    return [
        source(
            f"Return `{cause.text}` from {function} and test it in the caller, where it breaks no "
            "graph. Each side can be its own compiled function."
        ),
        judgement(
            f"If `{cause.text}` is really a setting (a step count, a flag), keep it as a Python "
            "number or bool. Each value then costs one compilation."
        ),
    ]


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

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    return y, y.sum() > 0

@torch.compile(backend="eager")
def doubled(y):
    return y * 2 + 1

@torch.compile(backend="eager")
def lowered(y):
    return y - 1 + 1

y, positive = f(torch.ones(3))
print(doubled(y) if positive else lowered(y))
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

print(torch.compile(f, backend="eager")(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def when_true(x):
    y = x * 2
    z = y + 1
    return y + z

@torch.compile(backend="eager")
def when_false(x):
    y = x - 1
    z = y * 3
    return y + z

x = torch.ones(3)
print(when_true(x) if x.sum() > 0 else when_false(x))
""",
        ),
    ),
)
