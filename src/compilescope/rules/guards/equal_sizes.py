"""Two sizes that were equal at the compilation are not equal now."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, config, judgement, source
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
    marks = " and ".join(
        f"`torch._dynamo.mark_dynamic({shown(tensor)}, {dim})`" for tensor, dim in _sizes(miss)
    )
    return [
        source(
            f"If they are equal by chance: {marks} before each call tell them apart, whatever the first sizes are."
        ),
        config(
            "`torch.fx.experimental._config.use_duck_shape = False` tells all sizes apart; more variables make guards and "
            "compilation slower. The name is private to torch and may change."
        ),
        judgement(
            f"If the code needs them equal {at_line(miss)}, or broadcasts one against the other, this call is another case and has a "
            "graph of its own."
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

f(torch.ones(4), torch.ones(4))
f(torch.ones(5), torch.ones(6))
""",
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2, y * 2

for one, two in ((4, 4), (5, 6)):
    x, y = torch.ones(one), torch.ones(two)
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.mark_dynamic(y, 0)
    f(x, y)
""",
            configured="""import torch
import torch.fx.experimental._config

@torch.compile(backend="eager", dynamic=True)
def f(x, y):
    return x * 2, y * 2

with torch.fx.experimental._config.patch(use_duck_shape=False):
    f(torch.ones(4), torch.ones(4))
    f(torch.ones(5), torch.ones(6))
""",
        ),
    ),
)
