"""A flag that is True in one call and False in another."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._subjects import both, called, named, reader


def _applies(miss: GuardFailure) -> bool:
    return both(miss, "bool") and miss.cause.kind != "SHAPE"


def _why(miss: GuardFailure) -> str:
    return (
        f"`{named(miss)}` was {miss.cause.expected} when `{called(miss)}` was compiled and is "
        f"{miss.cause.actual} now. {reader(miss)} reads it, and each value has its own graph."
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    return [
        judgement(
            f"Leave it: `{called(miss)}` is compiled once for True and once for False, and no "
            "more. Call it with both during warm-up if the delay matters."
        )
    ]


RULE = GuardRule(
    id="bool-change",
    order=450,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
