"""Breaks that someone asked for: `graph_break()` and `disable`."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.breaks._trees import called
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    return case.says(
        "torch._dynamo.graph_break()", "torch.compiler.disable()", "torch._dynamo.disable"
    )


def _in_torch(case: BreakCase) -> bool:
    return case.finding.in_torch or (case.says("graph_break()") and "graph_break" not in case.text)


def _why(case: BreakCase) -> str:
    if _in_torch(case):
        return (
            f"torch itself requests a break inside `{case.text}`. Removing it would gain you "
            "nothing."
        )
    if case.says("disable"):
        return f"`{called(case.spot.expression) or case.text}` is marked to run eagerly."
    return f"`{case.text}` requests a break here."


def _remedies(case: BreakCase) -> list[Remedy]:
    if _in_torch(case):
        return [judgement(f"Nothing to do: `{case.text}` is benign and runs the same either way.")]
    if case.says("disable"):
        name = called(case.spot.expression) or "the function"
        return [
            source(
                f"If `{name}` must run eagerly, call it in the caller: compile the code before it "
                f"and the code after it in `{case.function}` as two functions."
            )
        ]
    return [
        judgement(f"Find out why `{case.text}` is there. Leave it while the reason still holds.")
    ]


RULE = BreakRule(
    id="explicit-break",
    category="explicit",
    order=5,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
