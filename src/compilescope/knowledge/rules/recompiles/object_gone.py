"""An object that a compilation was tied to has been freed."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, shown

_OBJECT = re.compile(r"because (?P<object>.{1,400}) got deallocated")


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "WEAKREF"


def _object(miss: RecompileCase) -> str:
    match = _OBJECT.search(miss.finding.guard)
    return (
        shown(match["object"]).removesuffix(".__code__") if match else shown(miss.finding.subject)
    )


def _why(miss: RecompileCase) -> str:
    return (
        f"A compilation of `{called(miss)}` was tied to one object, `{_object(miss)}`. That object "
        "no longer exists, so Dynamo discarded the compilation."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"Create `{_object(miss)}` once, and keep it alive as long as you call "
            f"`{called(miss)}`, instead of recreating it before each call. Pass what differs as "
            "tensors."
        )
    ]


RULE = GuardRule(
    id="object-gone",
    order=10,
    needs=("WEAKREF",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
