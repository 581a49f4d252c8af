"""`and`, `or` and `not` between tensors: Python asks each for its truth."""

from __future__ import annotations

import ast

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import shown
from compilescope.rules.causes.rule import BreakRule, Cause


def _operation(cause: Cause) -> ast.BoolOp | None:
    nodes = [cause.spot.expression, *cause.spot.ancestors[:2]]
    return next((node for node in nodes if isinstance(node, ast.BoolOp)), None)


def _applies(cause: Cause) -> bool:
    return cause.says("Data-dependent branching") and _operation(cause) is not None


def _why(cause: Cause) -> str:
    operation = _operation(cause)
    assert operation is not None
    word = "or" if isinstance(operation.op, ast.Or) else "and"
    return (
        f"Python's `{word}` needs to know whether the tensor `{cause.text}` is true before it can "
        "continue."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    operation = _operation(cause)
    assert operation is not None
    return [
        source(
            f"Evaluate `{shown(operation)}` in the caller: pass the answer to `{cause.function}`, "
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
