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
        f"The default dtype was {was} when `{called(miss)}` was compiled and is {now} now. New "
        "tensors and results of Python numbers use it, so every graph depends on it."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Set the default dtype once, before the first call of `{called(miss)}`, and don't "
            "change it. Code that changes it temporarily, such as a loader, should be done by "
            "then."
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

x = torch.ones(3)
print(f(x).dtype)
torch.set_default_dtype(torch.float64)
print(f(x).dtype)
torch.set_default_dtype(torch.float32)
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

x = torch.ones(3)
torch.set_default_dtype(torch.float64)
print(f(x).dtype)
print(f(x).dtype)
torch.set_default_dtype(torch.float32)
""",
        ),
    ),
)
