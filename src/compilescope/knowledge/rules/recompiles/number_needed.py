"""A number was dynamic until a line needed its value."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    line_of,
    member,
    reader,
    shown,
    uses,
)

_CONSTANT = late(r"^(?P<subject>.+?) == -?[\d.]+(?:e-?\d+)?$")


def _applies(miss: RecompileCase) -> bool:
    match = _CONSTANT.match(miss.finding.guard)
    whole = match is not None and match["subject"] == miss.finding.subject
    return miss.finding.guard_kind == "SHAPE" and whole and ".size()" not in miss.finding.guard


def _why(miss: RecompileCase) -> str:
    return (
        f"`{shown(miss.finding.subject)}` was dynamic, but {reader(miss)} needs the number itself (a "
        "loop length, a list index, an operator setting). Dynamo fixed "
        f"`{shown(miss.finding.guard)}`; this call has {miss.finding.actual}."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name, line = shown(miss.finding.subject), line_of(miss)
    found = uses(miss, member(miss.finding.subject))
    few = leave(miss, f"`{name}`")
    if "range" in found:
        return [
            source(
                f"If you can, write the loop `{line}` as operations on whole tensors: it is then "
                f"not unrolled for each `{name}`."
            ),
            few,
        ]
    what = "Pick the entry" if "index" in found else f"Do what needs the number `{name}`"
    return [
        source(
            f"{what} in the caller, and pass the result to `{called(miss)}`. Pass a number as a "
            "tensor, whose value is not part of the graph."
        ),
        few,
    ]


RULE = GuardRule(
    id="number-needed",
    order=260,
    needs=("SHAPE",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
