"""A number was dynamic until a line needed its value."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.patterns import late
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave
from compilescope.rules.recompiles._subjects import called, line_of, member, reader, shown, uses

_CONSTANT = late(r"^(?P<subject>.+?) == -?[\d.]+(?:e-?\d+)?$")


def _applies(miss: GuardFailure) -> bool:
    match = _CONSTANT.match(miss.cause.guard)
    whole = match is not None and match["subject"] == miss.cause.subject
    return miss.cause.kind == "SHAPE" and whole and ".size()" not in miss.cause.guard


def _why(miss: GuardFailure) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was dynamic, but {reader(miss)} needs the number itself (a "
        "loop length, a list index, an operator setting). Dynamo fixed "
        f"`{shown(miss.cause.guard)}`; this call has {miss.cause.actual}."
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    name, line = shown(miss.cause.subject), line_of(miss)
    found = uses(miss, member(miss.cause.subject))
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
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
