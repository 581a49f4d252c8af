"""A loop over a size: each size has its own unrolled graph."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import line_of, member, shown, size_of, uses


def _applies(miss: RecompileCase) -> bool:
    size = size_of(miss.finding.subject)
    return (
        size is not None
        and miss.finding.guard_kind == "TENSOR_MATCH"
        and "range" in uses(miss, member(size[0]))
    )


def _why(miss: RecompileCase) -> str:
    return (
        f"How often `{line_of(miss)}` runs depends on `{shown(miss.finding.subject)}`. Dynamo "
        f"unrolls the loop, so the graph for {miss.finding.expected} can't serve "
        f"{miss.finding.actual}, even when marked dynamic."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    size = size_of(miss.finding.subject)
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
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
