"""The number of CPU threads changed."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called


def _applies(miss: Miss) -> bool:
    return miss.cause.subject == "num_threads"


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` was compiled while torch used {miss.cause.expected} CPU threads; now it "
        f"uses {miss.cause.actual}. Generated CPU code is specific to the number of threads, so "
        "Dynamo recompiles."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        source(
            f"Set the number of threads once, before the first call of `{called(miss)}`, and don't "
            "change it: look for later calls to `torch.set_num_threads`, including in libraries."
        )
    ]


RULE = GuardRule(
    id="num-threads",
    order=50,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

before = torch.get_num_threads()
print(f(torch.ones(3)))
torch.set_num_threads(before + 1)
print(f(torch.ones(3)))
torch.set_num_threads(before)
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

before = torch.get_num_threads()
torch.set_num_threads(before + 1)
print(f(torch.ones(3)))
print(f(torch.ones(3)))
torch.set_num_threads(before)
""",
        ),
    ),
)
