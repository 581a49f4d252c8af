"""A value that a graph break brought into Python is a constant in the rest of the function."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, cut, shown

_ON_THE_STACK = late(r"^___stack\d+\b(?!.*\()")
_TORCHS = ("type(", "len(", "list(", "dict(", "hasattr(", "dispatch keys", "___")


def _applies(miss: RecompileCase) -> bool:
    subject = miss.finding.subject
    if miss.finding.compiled.resumed_at is None or miss.finding.guard_kind in (
        "SHAPE",
        "TENSOR_MATCH",
        "OTHER",
    ):
        return False
    expression = "(" in subject and not subject.startswith(_TORCHS)
    return expression or _ON_THE_STACK.match(subject) is not None or "len(___stack" in subject


def _value(miss: RecompileCase) -> str:
    subject = miss.finding.subject
    return "the value from the break" if "___stack" in subject else f"`{shown(subject)}`"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{called(miss)}` breaks at line {miss.finding.compiled.resumed_at}, and continues in a second "
        f"compilation with {_value(miss)} as a Python value. It was {cut(miss.finding.expected)} "
        f"then and is {cut(miss.finding.actual)} now, and a Python value is a constant in the graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        judgement(
            f"Fix the graph break at line {miss.finding.compiled.resumed_at}: without it, there is no rest of "
            f"`{called(miss)}` to recompile."
        ),
        judgement(
            f"Or leave it if {_value(miss)} takes only a few values: the rest is compiled once for "
            "each, up to the recompile limit."
        ),
    ]


RULE = GuardRule(
    id="broken-value",
    order=275,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
