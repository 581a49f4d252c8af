"""A global variable, or something reached through one, has changed."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    both,
    called,
    cut,
    is_global,
    reader,
    shown,
)


def _applies(miss: RecompileCase) -> bool:
    return is_global(miss.finding.subject) and miss.finding.guard_kind not in (
        "TENSOR_MATCH",
        "SHAPE",
    )


def _why(miss: RecompileCase) -> str:
    return (
        f"{reader(miss)} reads `{shown(miss.finding.subject)}`, a global or something reached "
        f"through one. It was {cut(miss.finding.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.finding.actual)} now. In the graph it is a constant."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name, function = shown(miss.finding.subject), called(miss)
    if both(miss, "int", "float"):
        first = source(
            f"Pass `{name}` to `{function}` as an argument, or, if it is only used in arithmetic, "
            "make it a tensor: a tensor's value is not part of the graph."
        )
    else:
        first = source(
            f"Set `{name}` before the first call of `{function}` and don't change it. If it must "
            "change, write a function for each value and choose in the caller."
        )
    return [first, leave(miss, f"value of `{name}`")]


RULE = GuardRule(
    id="global-change",
    order=400,
    needs=("G[",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
