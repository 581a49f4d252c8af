"""A different object, where Dynamo tied the compilation to one."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, cut, named, reader


def _applies(miss: Miss) -> bool:
    return miss.cause.expected == "the same object" or miss.cause.kind in (
        "ID_MATCH",
        "WEAKREF_ALIVE",
    )


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled for one particular object `{named(miss)}`, because "
        f"{reader(miss)} depends on which one it is; this call has another "
        f"({cut(miss.cause.actual) or 'not described'})."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"Create `{name}` once, outside the loop. If it selects a case (an enum, a class), "
            "choose in the caller, and compile a function for each case."
        ),
        leave(miss, "object"),
    ]


RULE = GuardRule(
    id="object-identity",
    order=340,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import enum

import torch

class Mode(enum.Enum):
    ADD = 1
    SCALE = 2

@torch.compile(backend="eager")
def f(x, mode):
    return x + 1 if mode is Mode.ADD else x * 2

for mode in Mode:
    print(f(torch.ones(3), mode))
""",
            good="""import enum

import torch

class Mode(enum.Enum):
    ADD = 1
    SCALE = 2

@torch.compile(backend="eager")
def add(x):
    return x + 1

@torch.compile(backend="eager")
def scale(x):
    return x * 2

ways = {Mode.ADD: add, Mode.SCALE: scale}
for mode in Mode:
    print(ways[mode](torch.ones(3)))
""",
        ),
    ),
)
