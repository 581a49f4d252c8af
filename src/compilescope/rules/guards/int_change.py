"""An int argument that changes."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import make_variable, where_the_number_is_needed
from compilescope.rules.guards._subjects import both, called, condition, member, named, uses


def _applies(miss: Miss) -> bool:
    return both(miss, "int")


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled with `{named(miss)}` = {miss.cause.expected} as a constant; this call has {miss.cause.actual}. Dynamo lets an int "
        "vary once it has seen a second value, unless `dynamic=False` forbids it or the code needs the number itself."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    subject, name = miss.cause.subject, named(miss)
    needed = where_the_number_is_needed(miss)
    if needed:
        return needed
    if "branch" in uses(miss, member(subject)):
        test = condition(miss)
        return [
            source(
                f"`torch.compile(..., dynamic=True)` leaves one compilation for each side of `{test}`; `torch.cond({test}, on_true, on_false, (tensors,))` with it "
                "leaves one in all."
            ),
        ]
    return [
        source(
            f"`torch.compile(..., dynamic=True)` lets `{name}` vary from the first call (sizes too). Without it there is this one recompile, and from then on it "
            "varies."
        ),
        source(
            f"Or pass `torch.tensor({name})` where it is only computed with: its value is not part of the graph. As a size or a condition it breaks "
            "the graph, as an index it is read and fixed."
        ),
        *make_variable(subject),
    ]


RULE = GuardRule(
    id="int-change",
    order=460,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, n):
    return x * n

for n in (0, 1, 2, 3):
    f(torch.ones(3), n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    return x * n

for n in (0, 1, 2, 3):
    f(torch.ones(3), n)
""",
            configured="""import torch
import torch.compiler.config

@torch.compile(backend="eager")
def f(x, n):
    return x * n

with torch.compiler.config.patch(dynamic_sources="L['n']"):
    for n in (0, 1, 2, 3):
        f(torch.ones(3), n)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=False)
def f(x, n):
    return x * n

for n in (2, 3, 4):
    f(torch.ones(3), n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=False)
def f(x, n):
    return x * n

for n in (2, 3, 4):
    f(torch.ones(3), torch.tensor(n))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, n):
    for i in range(n):
        x = x + i
    return x

for n in (2, 3, 4):
    f(torch.ones(3), n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    return x + torch.arange(n).sum()

for n in (2, 3, 4):
    f(torch.ones(3), n)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, n):
    if n > 3:
        return x * 2
    return x + 1

for n in (2, 3, 4, 5):
    f(torch.ones(3), n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, n):
    return torch.cond(n > 3, lambda x: x * 2, lambda x: x + 1, (x,))

for n in (2, 3, 4, 5):
    f(torch.ones(3), n)
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    f(torch.ones(3), [1.5, 2.5, 3.5, 4.5, 5.5], n)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    f(torch.ones(3), torch.tensor([1.5, 2.5, 3.5, 4.5, 5.5]), n)
""",
        ),
    ),
)
