"""A condition on sizes: the code takes different paths for different shapes."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, condition, line_of, shown


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "SHAPE" and ".size()" in miss.cause.guard


def _why(miss: Miss) -> str:
    line = line_of(miss)
    where = f" (from `{line}`)" if line else ""
    return (
        f"The graph of `{called(miss)}` is valid only while `{shown(miss.cause.guard)}`{where}. In "
        f"this call `{shown(miss.cause.subject)}` is {miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    test = condition(miss, of_numbers=True)
    sides = judgement(
        f"Leave it: there is one compilation for each path through `{called(miss)}`, not one for "
        "each size."
    )
    if "<" in test or ">" in test:
        return [
            sides,
            source(
                f"If `{test}` only picks the larger or the smaller of two sizes, write `max(...)` "
                "or `min(...)`, which needs no branch."
            ),
        ]
    if test:
        return [sides]
    return [
        source(
            f"Keep `{shown(miss.cause.subject)}` on one side of `{shown(miss.cause.guard)}`: pad "
            "or crop if the shapes come from the data, or widen the `min` and `max` it was marked "
            "with."
        ),
        sides,
    ]


RULE = GuardRule(
    id="shape-condition",
    order=240,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    if x.shape[0] > 4:
        return x * 2
    return x + 1

for size in (3, 5, 6, 4):
    f(torch.ones(size))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2 if x.shape[0] == y.shape[0] else x + 1

f(torch.ones(3), torch.ones(4))
f(torch.ones(3), torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    count = x.shape[0] if x.shape[0] > 4 else 4
    return x * count

for size in (3, 5, 6, 4):
    print(f(torch.ones(size)))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    count = max(x.shape[0], 4)
    return x * count

for size in (3, 5, 6, 4):
    print(f(torch.ones(size)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3)
torch._dynamo.mark_dynamic(x, 0, min=2, max=8)
print(f(x))
print(f(torch.ones(9)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3)
torch._dynamo.mark_dynamic(x, 0, min=2, max=16)
print(f(x))
print(f(torch.ones(9)))
""",
        ),
    ),
)
