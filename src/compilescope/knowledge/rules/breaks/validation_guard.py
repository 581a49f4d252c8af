"""A check that raises: `if bad: raise`, or an `assert`, whose condition is a tensor."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import shown
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _check(case: BreakCase) -> ast.If | ast.Assert | None:
    statement = case.spot.statement
    if isinstance(statement, ast.Assert):
        return statement
    if (
        isinstance(statement, ast.If)
        and statement.body
        and isinstance(statement.body[-1], ast.Raise)
    ):
        return statement
    return None


def _applies(case: BreakCase) -> bool:
    return case.says("Data-dependent branching", "data-dependent") and _check(case) is not None


def _why(case: BreakCase) -> str:
    return (
        f"`{case.text}` is a tensor: whether to raise depends on its values, and Dynamo traces "
        "without values."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    check = _check(case)
    assert check is not None
    return [
        source(
            f"Check in the caller: test `{shown(check.test)}` before calling `{case.function}`, "
            "or return that tensor and raise after the call."
        )
    ]


RULE = BreakRule(
    id="validation-guard",
    category="validation-guard",
    order=10,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
