"""An int argument that changes."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import each_way, leave, varies_by_itself
from compilescope.rules.guards._subjects import both, called, condition, member, named, uses


def _applies(miss: Miss) -> bool:
    return both(miss, "int")


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled with `{named(miss)}` = {miss.cause.expected} as a "
        f"constant; this call has {miss.cause.actual}. Dynamo makes an int dynamic after a second "
        "value, unless `dynamic=False` forbids it or the code needs the number itself."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = named(miss)
    found = uses(miss, member(miss.cause.subject))
    if "index" in found:
        return [
            source(
                f"Pick the entry in the caller, and pass that to `{called(miss)}` instead of "
                f"`{name}`. Pass a number as a tensor, whose value is not part of the graph."
            ),
            leave(miss, f"`{name}`"),
        ]
    if "range" in found:
        return [leave(miss, f"`{name}`, whose loop is unrolled")]
    if "branch" in found:
        return [each_way(name, condition(miss))]
    return [varies_by_itself(name, " (except for 0 and 1)")]


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
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=False)
def f(x, n):
    return x * n

for n in (2, 3, 4):
    f(torch.ones(3), n)
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
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, table, n):
    return x + table[n]

for n in (2, 3, 4):
    print(f(torch.ones(3), [1.5, 2.5, 3.5, 4.5, 5.5], n))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, entry):
    return x + entry

table = [1.5, 2.5, 3.5, 4.5, 5.5]
for n in (2, 3, 4):
    print(f(torch.ones(3), torch.tensor(table[n], dtype=torch.float64)))
""",
        ),
    ),
)
