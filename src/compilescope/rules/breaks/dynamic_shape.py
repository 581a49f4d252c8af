"""Operators whose output size depends on the numbers: masks, nonzero, unique."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.patterns import late
from compilescope.rules.causes.rule import BreakRule, Cause

_OPERATOR = late(r"aten\.(\w+)")


def _applies(cause: Cause) -> bool:
    return cause.says("Dynamic shape operator", "Dynamic slicing with Tensor")


def _operator(cause: Cause) -> str:
    match = _OPERATOR.search(cause.site.context) or _OPERATOR.search(cause.site.explanation)
    return match.group(1) if match else "the operator"


def _why(cause: Cause) -> str:
    return (
        f"How many elements `{cause.text}` returns depends on the data (operator "
        f"{_operator(cause)}), so the graph can't know the size of what follows."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    if "nonzero" in cause.text or "argwhere" in cause.text:
        return [
            source(
                f"If you know the most elements `{cause.text}` can find, "
                "`torch.nonzero_static(..., size=...)` always returns that size. It pads with -1, "
                "which the code that follows must ignore."
            ),
            _in_caller(cause),
        ]
    return [_in_caller(cause)]


def _in_caller(cause: Cause) -> Remedy:
    return source(
        f"Run `{cause.text}` in the caller and pass the result to `{cause.function}`. Each new "
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
