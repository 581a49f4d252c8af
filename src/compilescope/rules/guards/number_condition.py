"""A branch on a Python number that may vary."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, condition, reader, shown


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "SHAPE"


def _why(miss: Miss) -> str:
    return (
        f"The graph of `{called(miss)}` holds only while `{shown(miss.cause.guard)}`, which {reader(miss)} depends on. In this call "
        f"`{shown(miss.cause.subject)}` is {miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name, test = shown(miss.cause.subject), condition(miss, of_numbers=True)
    leave = judgement(
        f"Or leave it: one compilation for each way through `{called(miss)}`, not one for each value of `{name}`."
    )
    if test:
        return [
            source(
                f"`{test}` splits the graph in two. To have one: `torch.cond({test}, on_true, on_false, (tensors,))`, or pass "
                f"`torch.tensor({name})` and use `torch.where({test}, ...)`, which computes both sides."
            ),
            leave,
        ]
    return [
        source(
            f"Pass `{name}` as a tensor, `torch.tensor({name})`: a tensor's value is not part of the graph."
        ),
        leave,
    ]


RULE = GuardRule(
    id="number-condition",
    order=270,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
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

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p if p > 0.5 else x

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), p)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return torch.where(p > 0.5, x * p, x)

for p in (0.1, 0.2, 0.7):
    f(torch.ones(3), torch.tensor(p))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p

for p in (0.1, float("nan")):
    f(torch.ones(3), p)
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, p):
    return x * p

for p in (0.1, float("nan")):
    f(torch.ones(3), torch.tensor(p))
""",
        ),
    ),
)
