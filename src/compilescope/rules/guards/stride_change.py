"""A tensor has a different memory layout."""

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
        change = f"`{shown(miss.cause.guard)}` held then and doesn't now"
    else:
        change = (
            f"`{shown(miss.cause.subject)}` was {miss.cause.expected} and is {miss.cause.actual}"
        )
    return (
        f"The memory layout of `{_tensor(miss)}` has changed since `{called(miss)}` was compiled: "
        f"{change} (for example, one is a transposed, sliced or expanded view, or channels-last). "
        f"Kernels are specific to the layout.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        judgement(
            f"Convert `{_tensor(miss)}` to one layout where it is created, if a copy there is "
            f"cheap. Otherwise, leave it: `{called(miss)}` is compiled once for each layout."
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
