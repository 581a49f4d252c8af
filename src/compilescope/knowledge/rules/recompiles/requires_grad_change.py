"""A tensor requires grad in one call and not in another."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    of_a_module,
    shown,
    wrapper_note,
)

_SUFFIX = ".requires_grad"


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject.endswith(_SUFFIX) and miss.finding.guard_kind == "TENSOR_MATCH"


def _tensor(miss: RecompileCase) -> str:
    return shown(miss.finding.subject.removesuffix(_SUFFIX))


def _why(miss: RecompileCase) -> str:
    was, now = (
        ("did not require", "requires")
        if miss.finding.actual == "True"
        else ("required", "does not require")
    )
    return (
        f"`{_tensor(miss)}` {was} grad when `{called(miss)}` was compiled and {now} it now. This "
        "decides whether the graph gets a backward, so each case has its own "
        f"graph.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, function = _tensor(miss), called(miss)
    if of_a_module(miss.finding.subject):
        return [
            source(
                f"Freeze or unfreeze `{tensor}` before the first call of `{function}`, if it stays "
                "that way."
            ),
            judgement(
                "Leave it for a schedule that unfreezes layer by layer: one compilation per stage "
                "is right."
            ),
        ]
    return [
        judgement(
            "Leave it if you need both: two compilations are right, and there won't be a third."
        ),
        source(
            f"Pass `{tensor}.detach()` in every call, if no gradient should flow through it (this "
            "makes no copy)."
        ),
    ]


RULE = GuardRule(
    id="requires-grad-change",
    order=160,
    needs=(".requires_grad",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
