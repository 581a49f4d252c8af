"""A tensor has a different number of dimensions."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, shown, wrapper_note

_SUFFIX = ".dim()"


def _applies(miss: Miss) -> bool:
    return miss.cause.subject.endswith(_SUFFIX)


def _tensor(miss: Miss) -> str:
    return shown(miss.cause.subject.removesuffix(_SUFFIX))


def _why(miss: Miss) -> str:
    return (
        f"`{_tensor(miss)}` had {miss.cause.expected} dimension(s) when `{called(miss)}` was "
        f"compiled and has {miss.cause.actual} now. Sizes can vary within one graph; the number of "
        f"dimensions can't.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    tensor = _tensor(miss)
    return [
        source(
            f"Give `{tensor}` the same number of dimensions in every call (a batch of one, "
            f"`{tensor}.unsqueeze(0)`, for a single sample), and undo it on the result, if "
            f"`{called(miss)}` treats both alike."
        ),
        leave(miss, "number of dimensions"),
    ]


RULE = GuardRule(
    id="rank-change",
    order=170,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(1, 3)))
print(f(torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(1, 3)))
print(f(torch.ones(3).unsqueeze(0)).squeeze(0))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

print(f(torch.ones(6, 3)))
print(f(torch.ones(2, 3, 3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for x in (torch.ones(6, 3), torch.ones(2, 3, 3)):
    print(f(x.reshape(-1, x.shape[-1])).reshape(x.shape))
""",
        ),
    ),
)
