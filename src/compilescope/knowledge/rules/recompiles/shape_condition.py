"""A condition on sizes: the code takes different paths for different shapes."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, condition, line_of, shown


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "SHAPE" and ".size()" in miss.finding.guard


def _why(miss: RecompileCase) -> str:
    line = line_of(miss)
    where = f" (from `{line}`)" if line else ""
    return (
        f"The graph of `{called(miss)}` is valid only while `{shown(miss.finding.guard)}`{where}. In "
        f"this call `{shown(miss.finding.subject)}` is {miss.finding.actual}."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    test = condition(miss, of_numbers=True)
    sides = judgement(
        f"Leave it: there is one compilation for each path through `{called(miss)}`, not one for "
        "each size."
    )
    if "<" in test or ">" in test:
        return [
            sides,
            source(
                f"If `{test}` only picks the larger or the smaller of two sizes, write `max(...)` "
                "or `min(...)`, which needs no branch."
            ),
        ]
    if test:
        return [sides]
    return [
        source(
            f"Keep `{shown(miss.finding.subject)}` on one side of `{shown(miss.finding.guard)}`: pad "
            "or crop if the shapes come from the data, or widen the `min` and `max` it was marked "
            "with."
        ),
        sides,
    ]


RULE = GuardRule(
    id="shape-condition",
    order=240,
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
