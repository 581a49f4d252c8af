"""A learning rate or other optimizer setting, changed by a schedule."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, shown

_SETTING = re.compile(r"\.param_groups\[\d+\]\['(?P<name>\w+)'\]")


def _name(miss: RecompileCase) -> str:
    match = _SETTING.search(miss.finding.subject)
    return match["name"] if match else ""


def _applies(miss: RecompileCase) -> bool:
    return _name(miss) != ""


def _why(miss: RecompileCase) -> str:
    return (
        f"`{shown(miss.finding.subject)}` was {miss.finding.expected} when `{called(miss)}` was "
        f"compiled and is {miss.finding.actual} now: the schedule changed a Python number that is a "
        "constant in the graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = _name(miss)
    return [
        source(
            f"Keep the optimizer's step out of compiled code, or read `{name}` in the caller and "
            f"pass it to `{called(miss)}` as a tensor."
        ),
        judgement(
            f"Leave it if that is all: in this run, `{called(miss)}` was compiled again "
            f"{_times(miss.finding.count)} because of it."
        ),
    ]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


RULE = GuardRule(
    id="optimizer-setting",
    order=380,
    needs=(".param_groups[",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
