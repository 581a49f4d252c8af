"""A tensor lies otherwise in memory."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, shown, wrapper_note

_STRIDE = re.compile(r"(?P<tensor>[^\s,()]+)\.stride\(\)\[(?P<dim>\d+)\]")


def _applies(miss: Miss) -> bool:
    return _STRIDE.search(miss.cause.subject) is not None


def _tensor(miss: Miss) -> str:
    match = _STRIDE.search(miss.cause.subject)
    return shown(match["tensor"]) if match else "the tensor"


def _why(miss: Miss) -> str:
    if miss.cause.kind == "SHAPE":
        change = f"`{shown(miss.cause.guard)}` held then, and does not now"
    else:
        change = (
            f"`{shown(miss.cause.subject)}` was {miss.cause.expected} and is {miss.cause.actual}"
        )
    return (
        f"`{_tensor(miss)}` does not lie in memory as it did when `{called(miss)}` was compiled: {change} (a transposed, "
        "sliced or expanded view, or channels-last, where it was laid out otherwise before). Kernels are made for the "
        f"layout.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        judgement(
            f"Bring `{_tensor(miss)}` into one layout where it is made, if a copy there is cheap; else leave it: `{called(miss)}` is compiled "
            "once for each layout that occurs."
        )
    ]


RULE = GuardRule(
    id="stride-change",
    order=180,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3, 4))
f(torch.ones(4, 3).t())
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

f(torch.ones(3, 4))
f(torch.ones(5, 8)[:, :6])
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(2, 3, 4, 5))
f(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last))
""",
        ),
    ),
)
