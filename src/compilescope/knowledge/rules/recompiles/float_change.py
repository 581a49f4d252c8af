"""A float that changes."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, number_varies, then
from compilescope.knowledge.rules.recompiles._subjects import (
    both,
    called,
    condition,
    line_of,
    member,
    named,
    on_a_module,
    reader,
    shown,
    uses,
)

_NAN = re.compile(r"isnan\((?P<name>[^()]+)\)")


def _applies(miss: RecompileCase) -> bool:
    return both(miss, "float") or _NAN.search(miss.finding.guard) is not None


def _name(miss: RecompileCase) -> str:
    match = _NAN.search(miss.finding.guard)
    return shown(match["name"]) if match else named(miss)


def _why(miss: RecompileCase) -> str:
    was = "nan" if _NAN.search(miss.finding.guard) else miss.finding.expected
    told = (
        f"`{called(miss)}` was compiled with `{_name(miss)}` = {was} as a constant; this call has "
        f"{miss.finding.actual}, and {reader(miss)} reads it."
    )
    after = then(miss, _name(miss)) or (
        "Dynamo makes a float dynamic after a "
        "second value, unless `dynamic=False` forbids it or the code needs the number itself."
    )
    return f"{told} {after}"


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name, line = _name(miss), line_of(miss)
    found = uses(miss, member(miss.finding.subject))
    if "math" in found:
        return [
            source(
                f"Do the `math` of `{line}` in the caller, and pass the result to `{called(miss)}` "
                "as a tensor, whose value is not part of the graph."
            ),
            leave(miss, f"`{name}`"),
        ]
    if "branch" in found:
        return number_varies(miss, name, condition(miss))
    if on_a_module(miss):
        return [
            source(
                f"If it is only used in arithmetic, keep `{name}` in a tensor (float64 keeps all "
                "its digits): a tensor's value is not part of the graph."
            ),
            *number_varies(miss, name)[-1:],
        ]
    return number_varies(miss, name)


RULE = GuardRule(
    id="float-change",
    order=470,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
