"""A branch on a dynamic Python number."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._subjects import called, reader, shown


def _applies(miss: GuardFailure) -> bool:
    return miss.cause.kind == "SHAPE"


def _why(miss: GuardFailure) -> str:
    return (
        f"The graph of `{called(miss)}` is valid only while `{shown(miss.cause.guard)}`, which "
        f"{reader(miss)} depends on. In this call `{shown(miss.cause.subject)}` is "
        f"{miss.cause.actual}."
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    return [
        judgement(
            f"Leave it: there is one compilation for each path through `{called(miss)}`, not one "
            f"for each value of `{shown(miss.cause.subject)}`."
        )
    ]


RULE = GuardRule(
    id="number-condition",
    order=270,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
