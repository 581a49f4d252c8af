"""A learning rate or other optimizer setting, changed by a schedule."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, shown

_SETTING = re.compile(r"\.param_groups\[\d+\]\['(?P<name>\w+)'\]")


def _name(miss: Miss) -> str:
    match = _SETTING.search(miss.cause.subject)
    return match["name"] if match else ""


def _applies(miss: Miss) -> bool:
    return _name(miss) != ""


def _why(miss: Miss) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was {miss.cause.expected} when `{called(miss)}` was "
        f"compiled and is {miss.cause.actual} now: the schedule changed a Python number that is a "
        "constant in the graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = _name(miss)
    return [
        source(
            f"Keep the optimizer's step out of compiled code, or read `{name}` in the caller and "
            f"pass it to `{called(miss)}` as a tensor."
        ),
        leave(miss, f"value of `{name}`"),
    ]


RULE = GuardRule(
    id="optimizer-setting",
    order=380,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)

@torch.compile(backend="eager")
def step(value, gradient):
    return value - optimizer.param_groups[0]["lr"] * gradient

for _ in range(3):
    print(step(torch.ones(3), torch.ones(3)))
    optimizer.param_groups[0]["lr"] *= 0.5
""",
            good="""import torch

weight = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([weight], lr=0.1)

@torch.compile(backend="eager")
def step(value, gradient, lr):
    return value - lr * gradient

for _ in range(3):
    lr = torch.tensor(optimizer.param_groups[0]["lr"], dtype=torch.float64)
    print(step(torch.ones(3), torch.ones(3), lr))
    optimizer.param_groups[0]["lr"] *= 0.5
""",
        ),
    ),
)
