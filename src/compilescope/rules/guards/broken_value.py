"""A value that a graph break brought into Python is a constant of the rest of the function."""

from __future__ import annotations

import re

from compilescope.rules.causes.remedy import Remedy, config, judgement, source
from compilescope.rules.causes.rule import Example, GuardRule, Miss
from compilescope.rules.guards._subjects import called, cut, line_of, shown, value_kind

_ON_THE_STACK = re.compile(r"^___stack\d+\b(?!.*\()")
_TORCHS = ("type(", "len(", "list(", "dict(", "hasattr(", "dispatch keys", "___")
_READ = re.compile(r"^(?:int|float)\(|\.item\(\)$")


def _applies(miss: Miss) -> bool:
    subject = miss.cause.subject
    if miss.frame.resumed_at is None or miss.cause.kind in ("SHAPE", "TENSOR_MATCH", "OTHER"):
        return False
    expression = "(" in subject and not subject.startswith(_TORCHS)
    return expression or _ON_THE_STACK.match(subject) is not None


def _value(miss: Miss) -> str:
    subject = miss.cause.subject
    return "what the break left" if subject.startswith("___") else f"`{shown(subject)}`"


def _why(miss: Miss) -> str:
    return (
        f"`{called(miss)}` breaks at line {miss.frame.resumed_at}, and goes on in a second compilation with {_value(miss)} as a Python value. It was "
        f"{cut(miss.cause.expected)} then and is {cut(miss.cause.actual)} now, and a Python value is a constant of the graph."
    )


def _unrolled(miss: Miss) -> bool:
    return "range(" in line_of(miss)


def _remedies(miss: Miss) -> list[Remedy]:
    value = _value(miss)
    remedies = [
        source(
            f"Compute {value} before the call, and pass it to `{called(miss)}` as an argument with `dynamic=True`: then there is neither the break nor this "
            "recompile. Or keep it a tensor, where it is only computed with."
        )
    ]
    if _READ.search(miss.cause.subject) and not _unrolled(miss):
        remedies.append(
            config(
                "`torch._dynamo.config.capture_scalar_outputs = True` keeps the number in the graph, as an unknown one: good for arithmetic and sizes; a branch on "
                "it, or a loop over it, breaks or fails instead."
            )
        )
    number = value_kind(miss.cause.expected) in ("int", "float")
    if number and not _unrolled(miss):
        remedies.append(
            judgement(
                "Or leave it: the rest is compiled a second time and then lets the number vary, where nothing needs the number itself."
            )
        )
    return remedies


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
            good="""import torch

@torch.compile(backend="eager", dynamic=True)
def f(n, y):
    return y.expand(n, 3)

for value in (2, 3, 4):
    f(int(torch.tensor([value]).sum()), torch.ones(3))
""",
            configured="""import torch

@torch.compile(backend="eager")
def f(x, y):
    n = int(x.sum())
    return y.expand(n, 3)

with torch._dynamo.config.patch(capture_scalar_outputs=True):
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
            good="""import torch

@torch.compile(backend="eager")
def f(x, y):
    scale = x.sum()
    return y * scale

for value in (2.5, 3.5):
    f(torch.tensor([value]), torch.ones(3))
""",
        ),
    ),
)
