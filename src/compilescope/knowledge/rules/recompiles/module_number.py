"""An int on a module, such as a step counter."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, one_module
from compilescope.knowledge.rules.recompiles._subjects import (
    both,
    called,
    is_of_plain_object,
    member,
    on_a_module,
    reader,
    shown,
    uses,
    wrapper_note,
)


def _applies(miss: RecompileCase) -> bool:
    return on_a_module(miss) and both(miss, "int") and miss.finding.guard_kind != "SHAPE"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{shown(miss.finding.subject)}` was {miss.finding.expected} when `{called(miss)}` was "
        f"compiled and is {miss.finding.actual} now; {reader(miss)} reads it. Dynamo treats an int "
        f"{_where(miss)} as a constant, even with `dynamic=True`: a counter recompiles at each "
        f"step until the limit.{wrapper_note(miss)}"
    )


def _where(miss: RecompileCase) -> str:
    """Of an object that a module holds, and that is none, the int is a constant all the same."""
    if is_of_plain_object(miss.finding.subject):
        return "that it reaches through an nn.Module"
    return "on an nn.Module"


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = shown(miss.finding.subject)
    if uses(miss, member(miss.finding.subject)) & {"range", "index"}:
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
