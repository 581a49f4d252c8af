"""`print` inside compiled code."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    return cause.says("builtin operator `print`", "builtin print")


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` must print when the line is reached. A graph can't do that, so Dynamo "
        "splits it in two and prints in between."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Move `{cause.text}` to the caller: return what it prints from `{cause.function}`, "
            "and print it after the call."
        )
    ]


RULE = BreakRule(
    id="print-call",
    category="logging",
    order=35,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
