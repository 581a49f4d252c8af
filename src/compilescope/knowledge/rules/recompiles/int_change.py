"""An int argument that changes."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, number_varies, then
from compilescope.knowledge.rules.recompiles._subjects import (
    both,
    called,
    condition,
    member,
    named,
    uses,
)


def _applies(miss: RecompileCase) -> bool:
    return both(miss, "int")


def _why(miss: RecompileCase) -> str:
    told = (
        f"`{called(miss)}` was compiled with `{named(miss)}` = {miss.finding.expected} as a "
        f"constant; this call has {miss.finding.actual}."
    )
    after = then(miss, named(miss)) or (
        "Dynamo makes an int dynamic after a second value, unless `dynamic=False` forbids it or the code needs the number itself."
    )
    return f"{told} {after}"


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = named(miss)
    found = uses(miss, member(miss.finding.subject))
    if "index" in found:
        return [
            source(
                f"Pick the entry in the caller, and pass that to `{called(miss)}` instead of "
                f"`{name}`. Pass a number as a tensor, whose value is not part of the graph."
            ),
            leave(miss, f"`{name}`"),
        ]
    if "range" in found:
        return [leave(miss, f"`{name}`, whose loop is unrolled")]
    if "branch" in found:
        return number_varies(miss, name, condition(miss))
    return number_varies(miss, name, but=" (except for 0 and 1)")


RULE = GuardRule(
    id="int-change",
    order=460,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
