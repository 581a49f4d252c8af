"""A loop that goes on while a tensor says so."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("Data-dependent branching") and isinstance(case.spot.statement, ast.While)


def _why(case: BreakCase) -> str:
    return (
        f"The number of iterations depends on the value of `{case.text}`, which tracing doesn't "
        "have."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            "Move the loop to the caller: compile one iteration as its own function, and test "
            f"`{case.text}` between the calls."
        )
    ]


RULE = BreakRule(
    id="tensor-while",
    category="data-dependent-branch",
    order=20,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
