"""A string argument that selects what the code does."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import both, called, cut, named, reader


def _applies(miss: RecompileCase) -> bool:
    return both(miss, "str")


def _why(miss: RecompileCase) -> str:
    return (
        f"`{named(miss)}` was {cut(miss.finding.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.finding.actual)} now. {reader(miss)} reads it; a string can't be a graph input, "
        "so each one has its own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"Choose in the caller: write a function for each `{name}` and compile each. Keep a "
            "string that is only a label out of compiled code, and convert text that is data to a "
            "tensor before the call."
        ),
        leave(miss, f"`{name}`"),
    ]


RULE = GuardRule(
    id="string-change",
    order=480,
    needs=("'", '"'),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
