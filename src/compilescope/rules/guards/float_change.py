"""A float that changes."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import each_way, leave, varies_by_itself
from compilescope.rules.guards._subjects import (
    both,
    called,
    condition,
    line_of,
    member,
    named,
    of_a_module,
    reader,
    shown,
    uses,
)

_NAN = re.compile(r"isnan\((?P<name>[^()]+)\)")


def _applies(miss: Miss) -> bool:
    return both(miss, "float") or _NAN.search(miss.cause.guard) is not None


def _name(miss: Miss) -> str:
    match = _NAN.search(miss.cause.guard)
    return shown(match["name"]) if match else named(miss)


def _why(miss: Miss) -> str:
    was = "nan" if _NAN.search(miss.cause.guard) else miss.cause.expected
    return (
        f"`{called(miss)}` was compiled with `{_name(miss)}` = {was} as a constant; this call has "
        f"{miss.cause.actual}, and {reader(miss)} reads it. Dynamo makes a float dynamic after a "
        "second value, unless `dynamic=False` forbids it or the code needs the number itself."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, line = _name(miss), line_of(miss)
    found = uses(miss, member(miss.cause.subject))
    if "math" in found:
        return [
            source(
                f"Do the `math` of `{line}` in the caller, and pass the result to `{called(miss)}` "
                "as a tensor, whose value is not part of the graph."
            ),
            leave(miss, f"`{name}`"),
        ]
    if "branch" in found:
        return [each_way(name, condition(miss))]
    if of_a_module(miss.cause.subject):
        return [
            source(
                f"If it is only used in arithmetic, keep `{name}` in a tensor (float64 keeps all "
                "its digits): a tensor's value is not part of the graph."
            ),
            varies_by_itself(name),
        ]
    return [varies_by_itself(name)]


RULE = GuardRule(
    id="float-change",
    order=470,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

for scale in (0.5, 1.5, 2.5):
    f(torch.ones(3), scale)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=False)
def f(x, scale):
    return x * scale

for scale in (0.5, 1.5, 2.5):
    f(torch.ones(3), scale)
""",
        ),
        Example(
            bad="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.5

    def forward(self, x):
        return x * self.scale

net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(3):
    print(compiled(torch.ones(3)))
    net.scale += 0.5
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.tensor(0.5, dtype=torch.float64)

    def forward(self, x):
        return x * self.scale

net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(3):
    print(compiled(torch.ones(3)))
    net.scale += 0.5
""",
        ),
        Example(
            bad="""import math

import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * math.exp(p)

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), p))
""",
            good="""import math

import torch

@torch.compile(backend="eager")
def f(x, factor):
    return x * factor

for p in (0.1, 0.2, 0.3):
    print(f(torch.ones(3), torch.tensor(math.exp(p), dtype=torch.float64)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * p if p > 0.5 else x + 1

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), p)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * p

for p in (float("nan"), 1.5):
    f(torch.ones(3), p)
""",
        ),
    ),
)
