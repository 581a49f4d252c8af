"""A `with` that Dynamo cannot enter."""

from __future__ import annotations

import ast

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    return cause.says("context manager", "Context manager")


def _manager(cause: Cause) -> str:
    statement = cause.spot.statement
    if isinstance(statement, ast.With):
        return ", ".join(shown(item.context_expr) for item in statement.items)
    return cause.text


def _why(cause: Cause) -> str:
    return (
        f"Dynamo doesn't know what entering `{_manager(cause)}` does, and can't exit and re-enter "
        "it around a break."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Move the body of `with {_manager(cause)}` into its own function, compile that, and "
            f"enter `{_manager(cause)}` around the call, in uncompiled code."
        )
    ]


RULE = BreakRule(
    id="context-manager",
    category="context-manager",
    order=55,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
