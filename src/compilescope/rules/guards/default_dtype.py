"""The default dtype changed."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._dtypes import dtype_of_code
from compilescope.rules.guards._subjects import called


def _applies(miss: Miss) -> bool:
    return miss.cause.subject == "default_dtype"


def _why(miss: Miss) -> str:
    was, now = dtype_of_code(miss.cause.expected), dtype_of_code(miss.cause.actual)
    return (
        f"The default dtype was {was} when `{called(miss)}` was compiled and is {now} now. New tensors and results "
        "of Python numbers take it, so every graph depends on it."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Set the default dtype once, before the first call of `{called(miss)}`. Code that builds a model under "
            "another default (a loader that sets it and sets it back) should finish before the first compiled call; inside "
            f"`{called(miss)}` say `dtype=` instead."
        )
    ]


RULE = GuardRule(
    id="default-dtype",
    order=60,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

f(torch.ones(3))
torch.set_default_dtype(torch.float64)
f(torch.ones(3, dtype=torch.float32))
torch.set_default_dtype(torch.float32)
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

torch.set_default_dtype(torch.float64)
f(torch.ones(3, dtype=torch.float32))
f(torch.ones(3, dtype=torch.float32))
torch.set_default_dtype(torch.float32)
""",
        ),
    ),
)
