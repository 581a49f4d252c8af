"""A module is in training mode in one call and in evaluation mode in another."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, reader, shown, wrapper_note

_SUFFIX = ".training"


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject.endswith(_SUFFIX)


def _mode(value: str) -> str:
    return {"True": "training", "False": "evaluation"}.get(value, value)


def _why(miss: RecompileCase) -> str:
    module = shown(miss.finding.subject.removesuffix(_SUFFIX))
    return (
        f"`{module}` was in {_mode(miss.finding.expected)} mode when `{called(miss)}` was compiled "
        f"and is in {_mode(miss.finding.actual)} mode now; {reader(miss)} reads it. Dropout, batch "
        f"norm and similar layers differ, so each mode has its own graph.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    call = ".eval()" if miss.finding.actual == "False" else ".train()"
    return [
        source(
            f"If you need only one mode, switch the model to it (`{call}`) before the first "
            "compiled call, including warm-up."
        ),
        judgement(
            "Leave it in a loop that trains and evaluates: it needs both modes, and compiles "
            "twice no matter how often it switches."
        ),
    ]


RULE = GuardRule(
    id="train-eval",
    order=280,
    needs=(".training",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
