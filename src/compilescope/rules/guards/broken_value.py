"""A value that a graph break brought into Python is a constant of the rest of the function."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, judgement
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, cut, shown

_ON_THE_STACK = re.compile(r"^___stack\d+\b(?!.*\()")
_TORCHS = ("type(", "len(", "list(", "dict(", "hasattr(", "dispatch keys", "___")


def _applies(miss: Miss) -> bool:
    subject = miss.cause.subject
    if miss.frame.resumed_at is None or miss.cause.kind in ("SHAPE", "TENSOR_MATCH", "OTHER"):
        return False
    expression = "(" in subject and not subject.startswith(_TORCHS)
    return expression or _ON_THE_STACK.match(subject) is not None or "len(___stack" in subject


def _value(miss: Miss) -> str:
    subject = miss.cause.subject
    return "what the break left" if "___stack" in subject else f"`{shown(subject)}`"


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` breaks at line {miss.frame.resumed_at}, and goes on in a second compilation with {_value(miss)} as a Python value. It was "
        f"{cut(miss.cause.expected)} then and is {cut(miss.cause.actual)} now, and a Python value is a constant of the graph."
    )


def _remedies(miss: Miss) -> list[Remedy]:
    return [
        judgement(
            f"Mend the graph break at line {miss.frame.resumed_at}: without it there is no rest of `{called(miss)}` to compile again."
        ),
        judgement(
            f"Or leave it where {_value(miss)} takes few values: the rest is compiled once for each, up to the recompile limit."
        ),
    ]


RULE = GuardRule(
    id="broken-value",
    order=275,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    examples=(
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, y):
    n = int(x.sum())
    return y.expand(n, 3)

for value in (2, 3, 4):
    f(torch.tensor([value]), torch.ones(3))
""",
        ),
        Example(
            bad="""import torch

@torch.compile(backend="eager")
def f(x, y):
    scale = x.sum().item()
    return y * scale

for value in (2.5, 3.5):
    f(torch.tensor([value]), torch.ones(3))
""",
        ),
    ),
)
