"""A dimension of a tensor takes another size."""

from __future__ import annotations

import re

from compilescope.rules.remedy import Remedy, judgement, source
from compilescope.rules.rule import Example, GuardRule, Miss

_SIZE = re.compile(r"^(?P<tensor>.+)\.size\(\)\[(?P<dim>\d+)\]$")


def _applies(miss: Miss) -> bool:
    return _SIZE.match(miss.cause.subject) is not None


def _why(miss: Miss) -> str:
    return (
        f"The graph was made for `{miss.cause.subject}` = {miss.cause.expected}; this call has "
        f"{miss.cause.actual}."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    match = _SIZE.match(miss.cause.subject)
    assert match is not None
    tensor, dim = match["tensor"], match["dim"]
    if miss.cause.actual in ("0", "1") or miss.cause.expected in ("0", "1"):
        return [
            source(
                f"Sizes 0 and 1 always compile by themselves. Pad `{tensor}` so that dimension {dim} is "
                "at least 2, or accept the one extra compilation."
            ),
            judgement(
                f"`torch._dynamo.decorators.mark_unbacked({tensor}, {dim})` before the call makes even "
                "these sizes dynamic; code that branches on the size then fails."
            ),
        ]
    return [
        source(
            f"Say that it varies, before the first call: `torch._dynamo.mark_dynamic({tensor}, {dim})`, or "
            f"`torch.compile(..., dynamic=True)` for `{miss.frame.function}`."
        ),
        judgement(
            f"Or keep to few sizes: pad `{tensor}` to a multiple, if shapes come from the data."
        ),
    ]


RULE = GuardRule(
    id="size-change",
    order=10,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
compiled(torch.ones(3))
compiled(torch.ones(4))
""",
            good="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager")
for size in (3, 4, 5):
    x = torch.ones(size)
    torch._dynamo.mark_dynamic(x, 0)
    compiled(x)
""",
        ),
        Example(
            bad="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager", dynamic=False)
for size in (3, 4, 5):
    compiled(torch.ones(size))
""",
            good="""import torch

def f(x):
    return x * 2

compiled = torch.compile(f, backend="eager", dynamic=True)
for size in (3, 4, 5):
    compiled(torch.ones(size))
""",
        ),
    ),
)
