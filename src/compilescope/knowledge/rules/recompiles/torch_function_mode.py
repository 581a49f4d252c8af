"""A torch function mode is active in one call and not in another."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called

_STATES = ("torch_function", "torch_function_all_disabled")


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "TORCH_FUNCTION_MODE_STACK" or miss.finding.subject in _STATES


def _why(miss: RecompileCase) -> str:
    if miss.finding.subject in _STATES:
        change = f"`{miss.finding.subject}` was {miss.finding.expected} at compilation and is {miss.finding.actual} now"
    else:
        change = (
            "the active modes (`TorchFunctionMode`; a default device is one too) differ from "
            "those at compilation"
        )
    return (
        f"Python code may handle torch calls inside `{called(miss)}`: {change}. Dynamo traces "
        "through such handlers, so each set of them has its own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"Enter the mode around every call of `{called(miss)}`, or around none. Exit one meant "
            "only for eager code (a counter, a logger) before the call."
        ),
        leave(miss, "set of modes"),
    ]


RULE = GuardRule(
    id="torch-function-mode",
    order=80,
    needs=("TORCH_FUNCTION_MODE_STACK", "torch_function"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
