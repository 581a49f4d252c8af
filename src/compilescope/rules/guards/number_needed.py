"""A number was dynamic until a line needed its value."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, line_of, member, reader, shown, uses

_CONSTANT = re.compile(r"^(?P<subject>.+?) == -?[\d.]+(?:e-?\d+)?$")


def _applies(miss: Miss) -> bool:
    match = _CONSTANT.match(miss.cause.guard)
    whole = match is not None and match["subject"] == miss.cause.subject
    return miss.cause.kind == "SHAPE" and whole and ".size()" not in miss.cause.guard


def _why(miss: Miss) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was dynamic, but {reader(miss)} needs the number itself (a "
        "loop length, a list index, an operator setting). Dynamo fixed "
        f"`{shown(miss.cause.guard)}`; this call has {miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, line = shown(miss.cause.subject), line_of(miss)
    found = uses(miss, member(miss.cause.subject))
    few = leave(miss, f"`{name}`")
    if "range" in found:
        return [
            source(
                f"If you can, write the loop `{line}` as operations on whole tensors: it is then "
                f"not unrolled for each `{name}`."
            ),
            few,
        ]
    what = "Pick the entry" if "index" in found else f"Do what needs the number `{name}`"
    return [
        source(
            f"{what} in the caller, and pass the result to `{called(miss)}`. Pass a number as a "
            "tensor, whose value is not part of the graph."
        ),
        few,
    ]


RULE = GuardRule(
    id="number-needed",
    order=260,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import math

import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * math.exp(p)

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), p))
""",
            good="""import math

import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, factor):
    return x * factor

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), torch.tensor(math.exp(p), dtype=torch.float64)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    for i in range(n):
        x = x + i
    return x

for n in (3, 4, 5):
    print(f(torch.ones(3), n))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    return x + torch.arange(n).sum()

for n in (3, 4, 5):
    print(f(torch.ones(3), n))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, scales, n):
    return x * scales[n]

for n in (2, 3, 4):
    print(f(torch.ones(3), [1.5, 2.5, 3.5, 4.5, 5.5], n))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, scale):
    return x * scale

scales = [1.5, 2.5, 3.5, 4.5, 5.5]
for n in (2, 3, 4):
    print(f(torch.ones(3), torch.tensor(scales[n], dtype=torch.float64)))
""",
        ),
        Example(
            bad="""import torch

torch.manual_seed(0)

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return torch.nn.functional.dropout(x, p) * 2

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), p))
""",
            good="""import torch

torch.manual_seed(0)

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

for p in (0.1, 0.2, 0.3):
    print(f(torch.nn.functional.dropout(torch.ones(3), p)))
""",
        ),
    ),
)
