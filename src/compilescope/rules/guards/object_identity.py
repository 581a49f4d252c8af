"""Another object, where Dynamo bound the compilation to one."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, cut, named, reader


def _applies(miss: Miss) -> bool:
    return miss.cause.expected == "the same object" or miss.cause.kind in (
        "ID_MATCH",
        "WEAKREF_ALIVE",
    )


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled for one particular object `{named(miss)}`, since {reader(miss)} depends on which one it is; "
        f"this call has another ({cut(miss.cause.actual) or 'not described'})."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"Pass the same `{name}` each time: make it once, outside the loop. If it chooses between ways (an enum, a class, a handle), choose "
            "before the call and compile a function for each way."
        ),
        judgement(
            "Or leave it: one compilation for each object that occurs, up to the recompile limit. Few fixed ones do no harm."
        ),
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
    f(torch.ones(3), mode)
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
    ways[mode](torch.ones(3))
""",
        ),
    ),
)
