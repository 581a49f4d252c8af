"""A tensor is marked dynamic or static after the first call."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, shown

_MARK = re.compile(r"(?:hasattr|getattr)\((?P<tensor>[^,]+), '_dynamo_\w*indices'")


def _applies(miss: Miss) -> bool:
    return (
        miss.cause.kind == "DIMENSION_DYNAMIC_MARKING_GUARD"
        or _MARK.search(miss.cause.guard) is not None
    )


def _tensor(miss: Miss) -> str:
    match = _MARK.search(miss.cause.guard)
    return shown(match["tensor"] if match else miss.cause.subject)


def _why(miss: Miss) -> str:
    return (
        f"`{_tensor(miss)}` has marks (mark_dynamic, mark_static, mark_unbacked) that it didn't "
        f"have when `{called(miss)}` was compiled. The mark calls for another graph, so Dynamo "
        "recompiles."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Mark `{_tensor(miss)}` before the first call of `{called(miss)}`, with the same "
            "dimensions each time. That graph then serves calls without the mark too."
        )
    ]


RULE = GuardRule(
    id="dynamic-marking",
    order=110,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(4)))
x = torch.ones(4)
torch._dynamo.mark_dynamic(x, 0)
print(f(x))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(4)
torch._dynamo.mark_dynamic(x, 0)
print(f(x))
print(f(torch.ones(4)))
""",
        ),
    ),
)
