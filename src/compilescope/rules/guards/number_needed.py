"""A number was a variable of the graph until a line needed its value."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, line_of, member, reader, shown, uses

_CONSTANT = re.compile(r"^(?P<subject>.+?) == -?[\d.]+(?:e-?\d+)?$")


def _applies(miss: Miss) -> bool:
    match = _CONSTANT.match(miss.cause.guard)
    whole = match is not None and match["subject"] == miss.cause.subject
    return miss.cause.kind == "SHAPE" and whole and ".size()" not in miss.cause.guard


def _why(miss: Miss) -> str:
    return (
        f"`{shown(miss.cause.subject)}` could vary, but {reader(miss)} needs the number itself (the length of a loop, a place in a list, "
        f"a setting of an operator). Dynamo fixed `{shown(miss.cause.guard)}`; this call has {miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, line = shown(miss.cause.subject), line_of(miss)
    found = uses(miss, member(miss.cause.subject))
    leave = judgement(
        f"Or keep to few values of `{name}`: each one that occurs is compiled once, up to the recompile limit."
    )
    if "math" in found:
        first = f"Use torch in place of `math` in `{line}` and pass `{name}` as a tensor: `torch.exp(torch.tensor({name}))` for `math.exp`."
    elif "range" in found:
        first = (
            f"Replace the loop `{line}`, which is unrolled once for each `{name}`, by operations on whole tensors over "
            f"`torch.arange({name})`, with `dynamic=True`."
        )
    elif "index" in found:
        first = (
            f"Pick the entry before the call and pass it, instead of `{name}`; or let `{line}` index a tensor (`torch.stack` of the list), where the "
            "place may vary."
        )
    else:
        first = (
            f"Do what needs the number before the call, and pass `{called(miss)}` the result; an operator with a tensor in place of "
            f"`{name}` (`torch.rand_like(x) < p` for a probability) can vary."
        )
    return [source(first), leave]


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
    f(torch.ones(3), p)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * torch.exp(p)

for p in (0.1, 0.2, 0.3):
    f(torch.ones(3), torch.tensor(p))
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
    f(torch.ones(3), n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    return x + torch.arange(n).sum()

for n in (3, 4, 5):
    f(torch.ones(3), n)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, scales, n):
    return x * scales[n]

for n in (2, 3, 4):
    f(torch.ones(3), [1.5, 2.5, 3.5, 4.5, 5.5], n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, scales, n):
    return x * scales[n]

for n in (2, 3, 4):
    f(torch.ones(3), torch.tensor([1.5, 2.5, 3.5, 4.5, 5.5]), n)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return torch.nn.functional.dropout(x, p)

for p in (0.1, 0.2, 0.3):
    f(torch.ones(3), p)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * (torch.rand_like(x) >= p) / (1 - p)

for p in (0.1, 0.2, 0.3):
    f(torch.ones(3), torch.tensor(p))
""",
        ),
    ),
)
