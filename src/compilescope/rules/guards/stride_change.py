"""A tensor lies otherwise in memory."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement, source
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
    tensor = _tensor(miss)
    return [
        source(
            f"Pass `{tensor}.contiguous()`, or for images `{tensor}.contiguous(memory_format=torch.channels_last)`, in every call. "
            "It copies only those that lie otherwise."
        ),
        judgement(
            "Or leave it: there is one compilation for each layout that occurs, and for large tensors two graphs may be cheaper "
            "than a copy at each call."
        ),
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
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3, 4).contiguous())
f(torch.ones(4, 3).t().contiguous())
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
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(x):
    return x * 2

f(torch.ones(3, 4))
f(torch.ones(5, 8)[:, :6].contiguous())
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
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for x in (torch.ones(2, 3, 4, 5), torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)):
    f(x.contiguous(memory_format=torch.channels_last))
""",
        ),
    ),
)
