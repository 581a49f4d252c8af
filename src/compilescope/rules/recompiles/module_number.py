"""An int on a module, such as a step counter."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave, one_module
from compilescope.rules.recompiles._subjects import (
    both,
    called,
    member,
    of_a_module,
    reader,
    shown,
    uses,
    wrapper_note,
)


def _applies(miss: GuardFailure) -> bool:
    return of_a_module(miss.cause.subject) and both(miss, "int") and miss.cause.kind != "SHAPE"


def _why(miss: GuardFailure) -> str:
    return (
        f"`{shown(miss.cause.subject)}` was {miss.cause.expected} when `{called(miss)}` was "
        f"compiled and is {miss.cause.actual} now; {reader(miss)} reads it. Dynamo treats an int "
        "on an nn.Module as a constant, even with `dynamic=True`: a counter recompiles at each "
        f"step until the limit.{wrapper_note(miss)}"
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    name = shown(miss.cause.subject)
    if uses(miss, member(miss.cause.subject)) & {"range", "index"}:
        return [one_module(miss), leave(miss, f"`{name}`")]
    return [
        source(
            f"If it changes between calls, keep `{name}` out of compiled code (count in the "
            "caller, for example), or in a tensor if it is only used in arithmetic."
        ),
        one_module(miss),
    ]


RULE = GuardRule(
    id="module-number",
    order=440,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
