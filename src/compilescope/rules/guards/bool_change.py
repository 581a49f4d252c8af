"""A flag that is True in one call and False in another."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import both, called, named, reader


def _applies(miss: Miss) -> bool:
    return both(miss, "bool") and miss.cause.kind != "SHAPE"


def _why(miss: Miss) -> str:
    return (
        f"`{named(miss)}` was {miss.cause.expected} when `{called(miss)}` was compiled and is "
        f"{miss.cause.actual} now. {reader(miss)} reads it, and each value has its own graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        judgement(
            f"Leave it: `{called(miss)}` is compiled once for True and once for False, and no "
            "more. Call it with both during warm-up if the delay matters."
        )
    ]


RULE = GuardRule(
    id="bool-change",
    order=450,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, double):
    return x * 2 if double else x + 1

f(torch.ones(3), True)
f(torch.ones(3), False)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, double):
    if double:
        return x * 2
    return x + 1

f(torch.ones(3), False)
f(torch.ones(3), True)
""",
        ),
    ),
)
