"""`and`, `or` and `not` between tensors: Python asks each for its truth."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import shown
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _operation(case: BreakCase) -> ast.BoolOp | None:
    nodes = [case.spot.expression, *case.spot.ancestors[:2]]
    return next((node for node in nodes if isinstance(node, ast.BoolOp)), None)


def _applies(case: BreakCase) -> bool:
    return case.says("Data-dependent branching") and _operation(case) is not None


def _why(case: BreakCase) -> str:
    operation = _operation(case)
    assert operation is not None
    word = "or" if isinstance(operation.op, ast.Or) else "and"
    return (
        f"Python's `{word}` needs to know whether the tensor `{case.text}` is true before it can "
        "continue."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    operation = _operation(case)
    assert operation is not None
    return [
        source(
            f"Evaluate `{shown(operation)}` in the caller: pass the answer to `{case.function}`, "
            "or return the tensors it tests."
        )
    ]


RULE = BreakRule(
    id="tensor-truth",
    category="data-dependent-branch",
    order=22,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
