"""A `with` that Dynamo cannot enter."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import shown
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    if case.says("context manager", "Context manager"):
        return True
    # torch 2.15 names the method of the manager that it does not go into.
    return case.says(".__enter__", ".__exit__") and isinstance(case.spot.statement, ast.With)


def _manager(case: BreakCase) -> str:
    statement = case.spot.statement
    if isinstance(statement, ast.With):
        return ", ".join(shown(item.context_expr) for item in statement.items)
    return case.text


def _why(case: BreakCase) -> str:
    return (
        f"Dynamo doesn't know what entering `{_manager(case)}` does, and can't exit and re-enter "
        "it around a break."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Move the body of `with {_manager(case)}` into its own function, compile that, and "
            f"enter `{_manager(case)}` around the call, in uncompiled code."
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
