"""A loop over a size: each size has its own unrolled graph."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._subjects import line_of, member, shown, size_of, uses


def _applies(miss: GuardFailure) -> bool:
    size = size_of(miss.cause.subject)
    return (
        size is not None
        and miss.cause.kind == "TENSOR_MATCH"
        and "range" in uses(miss, member(size[0]))
    )


def _why(miss: GuardFailure) -> str:
    return (
        f"How often `{line_of(miss)}` runs depends on `{shown(miss.cause.subject)}`. Dynamo "
        f"unrolls the loop, so the graph for {miss.cause.expected} can't serve "
        f"{miss.cause.actual}, even when marked dynamic."
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    size = size_of(miss.cause.subject)
    tensor = shown(size[0]) if size else "the tensor"
    return [
        source(
            f"If you can, write the loop `{line_of(miss)}` as operations on whole tensors: it is "
            "then not unrolled for each size."
        ),
        judgement(
            f"Or pad `{tensor}` to one length, or a few: each length is compiled once, up to the "
            "recompile limit."
        ),
    ]


RULE = GuardRule(
    id="size-unrolled",
    order=190,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
