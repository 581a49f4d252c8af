"""An exception that passes through a `finally`: reported there, raised elsewhere."""

from __future__ import annotations

from compilescope.rules.causes.remedy import Remedy, judgement
from compilescope.rules.causes.rule import BreakRule, Cause, Example


def _applies(cause: Cause) -> bool:
    return cause.says("Observed exception") and cause.spot.in_finally


def _why(cause: Cause) -> str:
    return (
        f"Something raised earlier, and `{cause.text}` is only the `finally` that the exception "
        "passed through while Dynamo was tracing. Look at the line that raised instead."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        judgement(
            f"Leave `{cause.text}` as it is and find what raised: call `{cause.function}` without "
            "torch.compile, and if it doesn't raise there, look for a branch that only compiled "
            "code takes."
        )
    ]


RULE = BreakRule(
    id="exception-in-finally",
    category="exception",
    order=3,
    applies=_applies,
    why=_why,
    remedies=_remedies,
    echo=True,
    examples=(
        Example(
            bad="""import torch

def inner(x, mask):
    return x + mask[0]

def f(x, mask, stack):
    stack.append(1)
    try:
        y = inner(x, mask)
    finally:
        stack.pop()
    return y

try:
    torch.compile(f, backend="eager")(torch.ones(3), None, [])
except TypeError:
    pass
""",
        ),
    ),
)
