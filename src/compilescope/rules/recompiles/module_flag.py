"""A flag or string on a module differs between calls or instances."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement
from compilescope.rules.causes.rule import GuardRule, RecompileCase
from compilescope.rules.recompiles._advice import one_module
from compilescope.rules.recompiles._subjects import (
    both,
    called,
    cut,
    on_a_module,
    reader,
    shown,
    wrapper_note,
)


def _applies(miss: RecompileCase) -> bool:
    return on_a_module(miss) and both(miss, "bool", "str") and miss.finding.guard_kind != "SHAPE"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{shown(miss.finding.subject)}` was {cut(miss.finding.expected)} when `{called(miss)}` was "
        f"compiled and is {cut(miss.finding.actual)} now: it was changed on the module, or this is "
        f"another instance of the class. {reader(miss)} reads it, and each value has its own "
        f"graph.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = shown(miss.finding.subject)
    return [
        one_module(miss),
        judgement(
            f"If it changes between calls, set `{name}` before the first call and don't change it, "
            "or accept one compilation for each value."
        ),
    ]


RULE = GuardRule(
    id="module-flag",
    order=430,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
