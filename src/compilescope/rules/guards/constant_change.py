"""A dtype, device, tuple or other constant that changes."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._advice import leave
from compilescope.rules.guards._subjects import called, cut, named, reader, wrapper_note

_KINDS = ("EQUALS_MATCH", "CONSTANT_MATCH", "RANGE_ITERATOR_MATCH")


def _applies(miss: Miss) -> bool:
    return miss.cause.kind in _KINDS and bool(miss.cause.expected and miss.cause.actual)


def _why(miss: Miss) -> str:
    return (
        f"`{named(miss)}` was {cut(miss.cause.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.cause.actual)} now. {reader(miss)} reads it; it isn't a tensor, so its value "
        f"is a constant in the graph.{wrapper_note(miss)}"
    )


def _remedies(miss: Miss) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"If possible, do what depends on `{name}` in the caller, before or after calling "
            f"`{called(miss)}`."
        ),
        leave(miss, f"value of `{name}`"),
    ]


RULE = GuardRule(
    id="constant-change",
    order=490,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, dtype):
    return (x * 2).to(dtype)

for dtype in (torch.float32, torch.float64):
    print(f(torch.ones(3), dtype))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x):
    return x * 2

for dtype in (torch.float32, torch.float64):
    print(f(torch.ones(3)).to(dtype))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, counts):
    return x * len(list(counts))

for length in (3, 4):
    print(f(torch.ones(3), iter(range(length))))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, length):
    return x * length

for length in (3, 4):
    print(f(torch.ones(3), torch.tensor(len(list(iter(range(length)))))))
""",
        ),
    ),
)
