"""A float that changes."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
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
        f"`{called(miss)}` was compiled with `{_name(miss)}` = {was} as a constant; this call has {miss.cause.actual}, and {reader(miss)} reads it. Dynamo lets a "
        "float vary once it has seen a second value, unless `dynamic=False` forbids it or the code needs the number itself."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, line = _name(miss), line_of(miss)
    found = uses(miss, member(miss.cause.subject))
    if "math" in found:
        return [
            source(
                f"Use torch in place of `math` in `{line}` and pass `{name}` as a tensor: `torch.exp(torch.tensor({name}))` for `math.exp`. `math` needs the number, so "
                "each value has its own graph, with `dynamic=True` too."
            )
        ]
    if "branch" in found:
        test = condition(miss)
        return [
            source(
                f"Pass `torch.tensor({name})` and write `torch.where({test}, ...)`, which computes both sides."
            ),
            judgement(
                f"Or `torch.compile(..., dynamic=True)`: one compilation for each side of `{test}`, not one for each value."
            ),
        ]
    tensor = (
        f"self.register_buffer('{member(miss.cause.subject)}', torch.tensor(...))"
        if of_a_module(miss.cause.subject)
        else f"torch.tensor({name})"
    )
    return [
        source(
            f"Put it in a tensor: `{tensor}`. Its value is not part of the graph. It is float32 unless you say `dtype=torch.float64`, where a Python float has the "
            "precision of float64."
        ),
        source(
            "Or `torch.compile(..., dynamic=True)`, which lets it vary from the first call (sizes too). Settings of operators, such as the `p` of dropout, stay "
            "constants nonetheless."
        ),
    ]


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
            good="""import torch

@torch.compile(backend="eager")
def f(x, scale):
    return x * scale

for scale in (0.5, 1.5, 2.5):
    f(torch.ones(3), torch.tensor(scale))
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
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
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
    compiled(torch.ones(3))
    net.scale += 0.5
""",
            good="""import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x):
        return x * self.scale

net = Net()
compiled = torch.compile(net, backend="eager")
for _ in range(3):
    compiled(torch.ones(3))
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
    f(torch.ones(3), p)
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * torch.exp(p)

for p in (0.1, 0.2, 0.3):
    f(torch.ones(3), torch.tensor(p))
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
            good="""import torch

@torch.compile(backend="eager")
def f(x, p):
    return torch.where(p > 0.5, x * p, x + 1)

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), torch.tensor(p))
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
            good="""import torch

@torch.compile(backend="eager")
def f(x, p):
    return x * p

for p in (float("nan"), 1.5):
    f(torch.ones(3), torch.tensor(p))
""",
        ),
    ),
)
