"""A branch on the value of a tensor."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says("Data-dependent branching", "guard on data-dependent expression")


def _why(case: BreakCase) -> str:
    return (
        f"The branch depends on the value of `{case.text}`. Dynamo traces without values, so it "
        "can't know which side to put in the graph."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    # A comprehension has a name of Python's own.
    named = not case.function.startswith("<")
    function = f"`{case.function}`" if named else "the function around it"
    return [
        source(
            f"Return `{case.text}` from {function} and test it in the caller, where it breaks no "
            "graph. Each side can be its own compiled function."
        ),
        judgement(
            f"If `{case.text}` is really a setting (a step count, a flag), keep it as a Python "
            "number or bool. Each value then costs one compilation."
        ),
    ]


RULE = BreakRule(
    id="tensor-if",
    category="data-dependent-branch",
    order=30,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
