"""The program itself raises: a call that ends in an exception has no graph."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("Observed exception") and isinstance(case.spot.statement, ast.Raise)


def _condition(case: BreakCase) -> str:
    """The test of the `if` around the `raise`, in whose body it is."""
    inner = case.spot.statement
    for node in case.spot.ancestors:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return ""
        if isinstance(node, ast.If) and any(each is inner for each in node.body):
            text = " ".join(ast.unparse(node.test).split()).replace("`", "'")
            return text if len(text) < 90 else ""
        if isinstance(node, ast.stmt):
            inner = node
    return ""


def _why(case: BreakCase) -> str:
    test = _condition(case)
    when = f", since `{test}`" if test else ""
    return (
        f"`{case.function}` itself raised here{when}: `{case.text}`. No graph can end in an "
        "exception, so Dynamo leaves this to plain Python, where it raises as in eager mode."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    test = _condition(case)
    what = f"`{test}`" if test else "what it depends on"
    return [
        judgement(
            f"Leave it if such a call is a mistake: find who gave `{case.function}` what it refuses. "
            f"If it happens often, test {what} in the caller, before the compiled call."
        )
    ]


RULE = BreakRule(
    id="own-raise",
    category="exception",
    order=65,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
