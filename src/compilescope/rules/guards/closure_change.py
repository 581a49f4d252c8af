"""A variable of the enclosing function has changed."""

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
        f"`{called(miss)}` uses {_name(miss)}{where}, which belongs to the enclosing function. It "
        f"was {cut(miss.cause.expected)} at compilation and is {cut(miss.cause.actual)} now. All "
        "closures made from one `def` share its compilations."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    if both(miss, "int", "float"):
        first = source(
            f"Make {_what(miss)} an argument of `{called(miss)}`, and compile `{called(miss)}` "
            "once. If it is only used in arithmetic, pass it as a tensor, which may change "
            "freely."
        )
    else:
        first = source(
            f"Write a function for each case that {_what(miss)} selects, and compile each: "
            "functions with their own `def` don't share compilations."
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
