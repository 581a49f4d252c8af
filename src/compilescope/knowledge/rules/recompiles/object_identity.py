"""A different object, where Dynamo tied the compilation to one."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, cut, named, reader


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.expected == "the same object" or miss.finding.guard_kind in (
        "ID_MATCH",
        "WEAKREF_ALIVE",
    )


def _why(miss: RecompileCase) -> str:
    return (
        f"`{called(miss)}` was compiled for one particular object `{named(miss)}`, because "
        f"{reader(miss)} depends on which one it is; this call has another "
        f"({cut(miss.finding.actual) or 'not described'})."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"Create `{name}` once, outside the loop. If it selects a case (an enum, a class), "
            "choose in the caller, and compile a function for each case."
        ),
        leave(miss, "object"),
    ]


RULE = GuardRule(
    id="object-identity",
    order=340,
    needs=("the same object", "ID_MATCH", "WEAKREF_ALIVE"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
