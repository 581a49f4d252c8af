"""A flag that is True in one call and False in another."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import both, called, named, reader


def _applies(miss: RecompileCase) -> bool:
    return both(miss, "bool") and miss.finding.guard_kind != "SHAPE"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{named(miss)}` was {miss.finding.expected} when `{called(miss)}` was compiled and is "
        f"{miss.finding.actual} now. {reader(miss)} reads it, and each value has its own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        judgement(
            f"Leave it: `{called(miss)}` is compiled once for True and once for False, and no "
            "more. Call it with both during warm-up if the delay matters."
        )
    ]


RULE = GuardRule(
    id="bool-change",
    order=450,
    needs=("True", "False"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
