"""An exception that passes through a `finally`: reported there, raised elsewhere."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement
from compilescope.rules.causes.rule import BreakRule, Cause


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
)
