"""Instances whose parameters differ in size share one compiled function."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave, one_module
from compilescope.rules.recompiles._subjects import called, shown, size_of, wrapper_note


def _applies(miss: GuardFailure) -> bool:
    size = size_of(miss.cause.subject)
    stored = size is not None and ("._parameters[" in size[0] or "._buffers[" in size[0])
    return stored and miss.cause.kind == "TENSOR_MATCH"


def _why(miss: GuardFailure) -> str:
    return (
        f"`{called(miss)}` was compiled for an instance with `{shown(miss.cause.subject)}` = "
        f"{miss.cause.expected}; this one has {miss.cause.actual}. Sizes of parameters and buffers "
        f"are constants even with `dynamic=True`.{wrapper_note(miss)}"
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    return [one_module(miss), leave(miss, "size")]


RULE = GuardRule(
    id="parameter-size",
    order=200,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
