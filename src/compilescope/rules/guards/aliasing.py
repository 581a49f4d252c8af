"""Two arguments are the same object in one call and different objects in another."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, shown

_IS = re.compile(r"^(?P<one>\S+) is (?P<two>\S+)$")
_DUPLICATES = re.compile(r'"([^"]+)"')


def _applies(miss: Miss) -> bool:
    if miss.cause.subject == "aliasing of arguments" or miss.cause.guard.startswith(
        "Duplicate tensors"
    ):
        return True
    return miss.cause.kind == "SHAPE" and _IS.match(miss.cause.subject) is not None


def _pair(miss: Miss) -> list[str]:
    match = _IS.match(miss.cause.subject)
    names = [match["one"], match["two"]] if match else _DUPLICATES.findall(miss.cause.guard)
    return [shown(name) for name in names]


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names) or "two arguments"


def _why(miss: Miss) -> str:
    names = _listed(_pair(miss))
    if _IS.match(miss.cause.subject):
        change = f"{names} were the same object; now they are two objects"
    else:
        change = f"{names} were different tensors; now they are the same one"
    return (
        f"When `{called(miss)}` was compiled, {change}. A write to one shows through the other, so "
        "Dynamo doesn't let the two cases share a graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    names = _pair(miss)
    last = f"`{names[-1]}`" if names else "one of them"
    return [
        source(
            f"If nothing writes to them, pass a copy of {last} when both are the same tensor. If "
            f"they are meant to be the same, let `{called(miss)}` take it once."
        ),
        judgement("Otherwise, leave it: there are only two cases, and each is compiled once."),
    ]


RULE = GuardRule(
    id="aliasing",
    order=100,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, y):
    return x + y

same = torch.ones(3)
print(f(same, same))
print(f(same, torch.ones(3)))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, y):
    return x + y

same = torch.ones(3)
print(f(same, same.clone()))
print(f(same, torch.ones(3)))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, y):
    return x + y

same = torch.ones(3)
print(f(same, torch.ones(3)))
print(f(same, same))
""",
            good="""import torch

@torch.compile(backend="eager")
def f(x, y):
    return x + y

same = torch.ones(3)
print(f(same, torch.ones(3)))
print(f(same, same.clone()))
""",
        ),
    ),
)
