"""`print` inside compiled code."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("builtin operator `print`", "builtin print")


def _why(case: BreakCase) -> str:
    return (
        f"`{case.text}` must print when the line is reached. A graph can't do that, so Dynamo "
        "splits it in two and prints in between."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Move `{case.text}` to the caller: return what it prints from `{case.function}`, "
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
