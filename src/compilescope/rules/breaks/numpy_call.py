"""NumPy functions that torch has no counterpart for."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    return cause.says("numpy")


def _why(cause: Cause) -> str:
    return (
        "Dynamo translates NumPy calls to torch where it can. It has no translation for "
        f"`{called(cause.spot.expression) or cause.text}`."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Compute `{cause.text}` in the caller and pass the result to `{cause.function}`. Pass "
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
