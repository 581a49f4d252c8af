"""A loop that goes on while a tensor says so."""

from __future__ import annotations

import ast

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    return cause.says("Data-dependent branching") and isinstance(cause.spot.statement, ast.While)


def _why(cause: Cause) -> str:
    return (
        f"The number of iterations depends on the value of `{cause.text}`, which tracing doesn't "
        "have."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            "Move the loop to the caller: compile one iteration as its own function, and test "
            f"`{cause.text}` between the calls."
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
