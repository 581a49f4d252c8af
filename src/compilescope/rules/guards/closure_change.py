"""A variable of a function around the compiled one has another value."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import (
    both,
    called,
    cut,
    is_closed_over,
    is_path,
    line_of,
    shown,
)

_CELL = re.compile(r"^(?P<function>.+)\.__closure__\[\d+\]\.cell_contents$")


def _applies(miss: Miss) -> bool:
    subject = miss.cause.subject
    if miss.cause.kind in ("TENSOR_MATCH", "SHAPE"):
        return False
    if _CELL.match(subject):
        return True
    return subject.isidentifier() and is_path(subject) and is_closed_over(miss, subject)


def _name(miss: Miss) -> str:
    match = _CELL.match(miss.cause.subject)
    return (
        f"a variable that `{shown(match['function'])}` closes over"
        if match
        else f"`{miss.cause.subject}`"
    )


def _why(miss: Miss) -> str:
    line = line_of(miss)
    where = f" in `{line}`" if line else ""
    return (
        f"`{called(miss)}` uses {_name(miss)}{where}, which belongs to the function around. It was {cut(miss.cause.expected)} at the "
        f"compilation and is {cut(miss.cause.actual)} now. Every closure made from one `def` shares its compilations, so they meet here."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    if both(miss, "int", "float"):
        first = source(
            f"Let `{called(miss)}` take {_what(miss)} as an argument and compile it once; as a tensor, where it is only computed with, "
            "it may change freely."
        )
    else:
        first = source(
            f"Write a function for each way that {_what(miss)} chooses, and compile each: functions with a `def` of their own do not "
            "share compilations."
        )
    return [first, leave(miss, "value")]


def _what(miss: Miss) -> str:
    match = _CELL.match(miss.cause.subject)
    return f"what `{shown(match['function'])}` closes over" if match else f"`{miss.cause.subject}`"


RULE = GuardRule(
    id="closure-change",
    order=410,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def make(scale):
    def f(x):
        return x * scale

    return torch.compile(f, backend="eager")

for scale in (2, 3, 4):
    print(make(scale)(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

for scale in (2, 3, 4):
    print(f(torch.ones(3), torch.tensor(scale)))
""",
        ),
        Example(
            bad="""import torch

def make(scale):
    return torch.compile(lambda x: x * scale, backend="eager")

for scale in (2.5, 3.5):
    print(make(scale)(torch.ones(3)))
""",
            good="""import torch

f = torch.compile(lambda x, scale: x * scale, backend="eager")

for scale in (2.5, 3.5):
    print(f(torch.ones(3), torch.tensor(scale, dtype=torch.float64)))
""",
        ),
        Example(
            bad="""import torch

def make(mode):
    def f(x):
        return x.relu() if mode == "relu" else x.tanh()

    return torch.compile(f, backend="eager")

for mode in ("relu", "tanh"):
    print(make(mode)(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def relu(x):
    return x.relu()

@torch.compile(backend="eager")
def tanh(x):
    return x.tanh()

for f in (relu, tanh):
    print(f(torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

def make(scale):
    def g(x):
        return x * scale

    return g

@torch.compile(backend="eager")
def f(x, g):
    return g(x)

for scale in (2, 3, 4):
    print(f(torch.ones(3), make(scale)))
""",
            good="""import torch

def g(x, scale):
    return x * scale

@torch.compile(backend="eager")
def f(x, g, scale):
    return g(x, scale)

for scale in (2, 3, 4):
    print(f(torch.ones(3), g, torch.tensor(scale)))
""",
        ),
    ),
)
