"""A variable of a function around the compiled one has another value."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import where_the_number_is_needed
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
    remedies = where_the_number_is_needed(miss)
    if remedies:
        pass
    elif both(miss, "int", "float"):
        remedies.append(
            source(
                f"Let it vary: `torch.compile(..., dynamic=True)`, or a tensor in its place (`torch.tensor({cut(miss.cause.actual)})`), whose value is not part "
                "of the graph."
            )
        )
    else:
        remedies.append(
            source(
                f"Pass what differs to `{called(miss)}` as a tensor argument where it is data; where it chooses between ways, write a function for "
                "each way."
            )
        )
    remedies.append(
        source(
            "Or give each `torch.compile(...)` call `isolate_recompiles=True` (torch 2.13): each closure is compiled as now, but none uses up the recompile limit "
            "of the others."
        )
    )
    return remedies


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
    make(scale)(torch.ones(3))
""",
            good="""import torch

def make(scale):
    def f(x):
        return x * scale

    return torch.compile(f, backend="eager", dynamic=True)

for scale in (2, 3, 4):
    make(scale)(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def make(scale):
    return torch.compile(lambda x: x * scale, backend="eager")

for scale in (2.5, 3.5):
    make(scale)(torch.ones(3))
""",
            good="""import torch

def make(scale):
    return torch.compile(lambda x: x * scale, backend="eager")

for scale in (2.5, 3.5):
    make(torch.tensor(scale))(torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

def make(mode):
    def f(x):
        return x.relu() if mode == "relu" else x.tanh()

    return torch.compile(f, backend="eager")

for mode in ("relu", "tanh"):
    make(mode)(torch.ones(3))
""",
            good="""import torch

def make(mode):
    def f(x):
        return x.relu() if mode == "relu" else x.tanh()

    return torch.compile(f, backend="eager", isolate_recompiles=True)

for mode in ("relu", "tanh"):
    make(mode)(torch.ones(3))
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
    f(torch.ones(3), make(scale))
""",
            good="""import torch

def make(scale):
    def g(x):
        return x * scale

    return g

@torch.compile(backend="eager", dynamic=True)
def f(x, g):
    return g(x)

for scale in (2, 3, 4):
    f(torch.ones(3), make(scale))
""",
        ),
    ),
)
