"""Logging, warnings and progress bars inside compiled code."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import called
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule


def _applies(case: BreakCase) -> bool:
    # torch 2.13 names `_warnings.warn` as an example in unrelated explanations: ask the context.
    if case.says("logging.Logger method") or "module: _warnings" in case.finding.context:
        return True
    name = called(case.spot.expression)
    if name.startswith(("logging.", "warnings.warn")) or "tqdm" in name:
        return True
    return "tqdm" in case.finding.context


def _why(case: BreakCase) -> str:
    return f"`{case.text}` produces output when the line is reached; a graph only computes tensors."


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Move `{case.text}` to the caller: return what it reports from `{case.function}`, "
            "and report it after the call."
        )
    ]


RULE = BreakRule(
    id="logging-call",
    category="logging",
    order=36,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
