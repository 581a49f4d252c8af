"""NumPy functions that torch has no counterpart for."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import called
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("numpy")


def _why(case: BreakCase) -> str:
    return (
        "Dynamo translates NumPy calls to torch where it can. It has no translation for "
        f"`{called(case.spot.expression) or case.text}`."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Compute `{case.text}` in the caller and pass the result to `{case.function}`. Pass "
            "an array as a tensor of the dtype you want."
        )
    ]


RULE = BreakRule(
    id="numpy-call",
    category="extension",
    order=34,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
