"""A branch on a dynamic Python number."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, reader, shown


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "SHAPE"


def _why(miss: RecompileCase) -> str:
    return (
        f"The graph of `{called(miss)}` is valid only while `{shown(miss.finding.guard)}`, which "
        f"{reader(miss)} depends on. In this call `{shown(miss.finding.subject)}` is "
        f"{miss.finding.actual}."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        judgement(
            f"Leave it: there is one compilation for each path through `{called(miss)}`, not one "
            f"for each value of `{shown(miss.finding.subject)}`."
        )
    ]


RULE = GuardRule(
    id="number-condition",
    order=270,
    needs=("SHAPE",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
