"""Logging, warnings and progress bars inside compiled code."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakRule, Cause


def _applies(cause: Cause) -> bool:
    # torch 2.13 names `_warnings.warn` as an example in unrelated explanations: ask the context.
    if cause.says("logging.Logger method") or "module: _warnings" in cause.site.context:
        return True
    name = called(cause.spot.expression)
    if name.startswith(("logging.", "warnings.warn")) or "tqdm" in name:
        return True
    return "tqdm" in cause.site.context


def _why(cause: Cause) -> str:
    return (
        f"`{cause.text}` produces output when the line is reached; a graph only computes tensors."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Move `{cause.text}` to the caller: return what it reports from `{cause.function}`, "
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
