"""An exception that passes through a `finally`: reported there, raised elsewhere."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("Observed exception") and case.spot.in_finally


def _why(case: BreakCase) -> str:
    return (
        f"Something raised earlier, and `{case.text}` is only the `finally` that the exception "
        "passed through while Dynamo was tracing. Look at the line that raised instead."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        judgement(
            f"Leave `{case.text}` as it is and find what raised: call `{case.function}` without "
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
