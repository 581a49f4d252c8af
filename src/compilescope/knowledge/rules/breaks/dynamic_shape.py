"""Operators whose output size depends on the numbers: masks, nonzero, unique."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule

_OPERATOR = late(r"aten\.(\w+)")


def _applies(case: BreakCase) -> bool:
    return case.says("Dynamic shape operator", "Dynamic slicing with Tensor")


def _operator(case: BreakCase) -> str:
    match = _OPERATOR.search(case.finding.context) or _OPERATOR.search(case.finding.explanation)
    return match.group(1) if match else "the operator"


def _why(case: BreakCase) -> str:
    return (
        f"How many elements `{case.text}` returns depends on the data (operator "
        f"{_operator(case)}), so the graph can't know the size of what follows."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    if "nonzero" in case.text or "argwhere" in case.text:
        return [
            source(
                f"If you know the most elements `{case.text}` can find, "
                "`torch.nonzero_static(..., size=...)` always returns that size. It pads with -1, "
                "which the code that follows must ignore."
            ),
            _in_caller(case),
        ]
    return [_in_caller(case)]


def _in_caller(case: BreakCase) -> Remedy:
    return source(
        f"Run `{case.text}` in the caller and pass the result to `{case.function}`. Each new "
        "size may cost a compilation until Dynamo makes it dynamic."
    )


RULE = BreakRule(
    id="dynamic-shape",
    category="dynamic-shape-operator",
    order=45,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
