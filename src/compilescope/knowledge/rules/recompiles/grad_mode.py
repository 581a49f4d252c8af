"""Calls with and without gradients."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject == "grad_mode"


def _mode(value: str) -> str:
    return {"True": "gradients on", "False": "gradients off"}.get(value, f"grad mode {value}")


def _why(miss: RecompileCase) -> str:
    return (
        f"`{called(miss)}` was compiled with {_mode(miss.finding.expected)}, and this call had "
        f"{_mode(miss.finding.actual)} (torch.no_grad(), inference_mode() or set_grad_enabled() "
        "around one of the calls, or another thread: each thread starts with gradients on). A "
        "graph with a backward and one without are two graphs."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    function = called(miss)
    return [
        judgement(
            f"Leave it if `{function}` both trains and evaluates: two compilations are right, and "
            "there won't be a third."
        ),
        judgement(
            f"Warm up `{function}` in the same mode as the calls that follow: a first call in the "
            "other mode costs a compilation that is never reused."
        ),
    ]


RULE = GuardRule(
    id="grad-mode",
    order=30,
    needs=("grad_mode",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
