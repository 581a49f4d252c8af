"""A tensor is marked dynamic or static after the first call."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, shown

_MARK = late(r"(?:hasattr|getattr)\((?P<tensor>[^,]{1,400}), '_dynamo_\w*indices'")


def _applies(miss: RecompileCase) -> bool:
    return (
        miss.finding.guard_kind == "DIMENSION_DYNAMIC_MARKING_GUARD"
        or _MARK.search(miss.finding.guard) is not None
    )


def _tensor(miss: RecompileCase) -> str:
    match = _MARK.search(miss.finding.guard)
    return shown(match["tensor"] if match else miss.finding.subject)


def _why(miss: RecompileCase) -> str:
    return (
        f"`{_tensor(miss)}` has marks (mark_dynamic, mark_static, mark_unbacked) that it didn't "
        f"have when `{called(miss)}` was compiled. The mark calls for another graph, so Dynamo "
        "recompiles."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"Mark `{_tensor(miss)}` before the first call of `{called(miss)}`, with the same "
            "dimensions each time. That graph then serves calls without the mark too."
        )
    ]


RULE = GuardRule(
    id="dynamic-marking",
    order=110,
    needs=("DIMENSION_DYNAMIC_MARKING_GUARD", "_dynamo_"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
