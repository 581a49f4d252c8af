"""Instances whose parameters differ in size share one compiled function."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, one_module
from compilescope.knowledge.rules.recompiles._subjects import called, shown, size_of, wrapper_note


def _applies(miss: RecompileCase) -> bool:
    size = size_of(miss.finding.subject)
    stored = size is not None and ("._parameters[" in size[0] or "._buffers[" in size[0])
    return stored and miss.finding.guard_kind == "TENSOR_MATCH"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{called(miss)}` was compiled for an instance with `{shown(miss.finding.subject)}` = "
        f"{miss.finding.expected}; this one has {miss.finding.actual}. Sizes of parameters and buffers "
        f"are constants even with `dynamic=True`.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [one_module(miss), leave(miss, "size")]


RULE = GuardRule(
    id="parameter-size",
    order=200,
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
