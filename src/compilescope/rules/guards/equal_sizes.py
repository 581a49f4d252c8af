"""Two sizes that were equal at the compilation are not equal now."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import at_line, called, shown, size_of

_EQUAL = re.compile(r"^(?P<one>\S+\.size\(\)\[\d+\]) == (?P<two>\S+\.size\(\)\[\d+\])$")


def _sizes(miss: Miss) -> list[tuple[str, int]]:
    match = _EQUAL.match(miss.cause.guard)
    pair = [size_of(match["one"]), size_of(match["two"])] if match else []
    return [size for size in pair if size is not None]


def _applies(miss: Miss) -> bool:
    return miss.cause.kind == "SHAPE" and len(_sizes(miss)) == 2


def _why(miss: Miss) -> str:
    return (
        f"When `{called(miss)}` was compiled, `{shown(miss.cause.guard)}` held, and Dynamo took the two sizes for one variable. In "
        f"this call they are {miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"If they are equal only by chance, warm `{called(miss)}` up with two calls whose sizes all differ: Dynamo then takes them for "
            "two variables."
        ),
        judgement(
            f"Leave it where the code needs them equal {at_line(miss)}: this call is then another case, with a graph of its own."
        ),
    ]


RULE = GuardRule(
    id="equal-sizes",
    order=230,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2, y * 2

print(f(torch.ones(4), torch.ones(4)))
print(f(torch.ones(5), torch.ones(6)))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2, y * 2

f(torch.ones(2), torch.ones(3))
f(torch.ones(7), torch.ones(8))
print(f(torch.ones(4), torch.ones(4)))
print(f(torch.ones(5), torch.ones(6)))
""",
        ),
    ),
)
