"""A flag that is True at one call and False at another."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import keep_both
from compilescope.rules.guards._subjects import both, called, condition, named, reader


def _applies(miss: Miss) -> bool:
    return both(miss, "bool") and miss.cause.kind != "SHAPE"


def _why(miss: Miss) -> str:
    return (
        f"`{named(miss)}` was {miss.cause.expected} when `{called(miss)}` was compiled and is {miss.cause.actual} now. {reader(miss)} reads it, and "
        "each of its two values has its own graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, test = named(miss), condition(miss)
    where = f" in place of the branch on `{test}`" if test else ""
    return [
        source(
            f"If it is data: pass `torch.tensor({name})` and use `torch.where({name}, ...)`{where}, which computes both sides, or "
            f"`torch.cond({name}, on_true, on_false, (tensors,))`, which computes one."
        ),
        keep_both(miss, f"value of `{name}`"),
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
            good="""import torch

@torch.compile(backend="eager")
def f(x, double):
    return torch.where(double, x * 2, x + 1)

f(torch.ones(3), torch.tensor(True))
f(torch.ones(3), torch.tensor(False))
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
            good="""import torch

@torch.compile(backend="eager")
def f(x, double):
    return torch.cond(double, lambda x: x * 2, lambda x: x + 1, (x,))

f(torch.ones(3), torch.tensor(True))
f(torch.ones(3), torch.tensor(False))
""",
        ),
    ),
)
