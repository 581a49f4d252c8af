"""A branch on a dynamic Python number."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, reader, shown


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "SHAPE"


def _why(miss: Miss) -> str:
    return (
        f"The graph of `{called(miss)}` is valid only while `{shown(miss.cause.guard)}`, which "
        f"{reader(miss)} depends on. In this call `{shown(miss.cause.subject)}` is "
        f"{miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        judgement(
            f"Leave it: there is one compilation for each path through `{called(miss)}`, not one "
            f"for each value of `{shown(miss.cause.subject)}`."
        )
    ]


RULE = GuardRule(
    id="number-condition",
    order=270,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    if n > 3:
        return x * 2
    return x + 1

for n in (2, 3, 4, 5):
    f(torch.ones(3), n)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p if p > 0.5 else x

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), p)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p

for p in (0.1, float("nan")):
    f(torch.ones(3), p)
""",
        ),
    ),
)
