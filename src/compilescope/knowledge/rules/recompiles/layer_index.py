"""Layers that know their own index share one compiled function."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, one_module
from compilescope.knowledge.rules.recompiles._subjects import (
    both,
    called,
    line_of,
    member,
    shown,
    uses,
)

_INDEX = late(
    r"^(?:(?:layer|block|stage|expert|depth|head|group)_?)?(?:idx|index|id|num|number|no)$|^(?:layer|block|stage)$"
)


def _applies(miss: RecompileCase) -> bool:
    subject = miss.finding.subject
    return (
        "." in subject
        and both(miss, "int")
        and _INDEX.match(member(subject)) is not None
        and miss.finding.guard_kind != "SHAPE"
    )


def _why(miss: RecompileCase) -> str:
    return (
        f"`{called(miss)}` was compiled for a layer with `{shown(miss.finding.subject)}` = "
        f"{miss.finding.expected}; this one has {miss.finding.actual}. All layers of a class share the "
        f"code of `{called(miss)}`, and the number is a constant in each graph: one compilation "
        "per layer, up to the recompile limit."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name = member(miss.finding.subject)
    if "index" not in uses(miss, name):
        return [one_module(miss), leave(miss, f"`{name}`")]
    return [
        source(
            f"In the caller, select what `{line_of(miss)}` picks by `{name}`, and pass only that: "
            "one graph then serves all layers."
        ),
        one_module(miss),
    ]


RULE = GuardRule(
    id="layer-index",
    order=390,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
