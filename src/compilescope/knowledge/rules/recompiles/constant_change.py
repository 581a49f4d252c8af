"""A dtype, device, tuple or other constant that changes."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    cut,
    named,
    reader,
    wrapper_note,
)

_KINDS = ("EQUALS_MATCH", "CONSTANT_MATCH", "RANGE_ITERATOR_MATCH")


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind in _KINDS and bool(miss.finding.expected and miss.finding.actual)


def _why(miss: RecompileCase) -> str:
    return (
        f"`{named(miss)}` was {cut(miss.finding.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.finding.actual)} now. {reader(miss)} reads it; it isn't a tensor, so its value "
        f"is a constant in the graph.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"If possible, do what depends on `{name}` in the caller, before or after calling "
            f"`{called(miss)}`."
        ),
        leave(miss, f"value of `{name}`"),
    ]


RULE = GuardRule(
    id="constant-change",
    order=490,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
