"""Any other guard that failed."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    at_line,
    called,
    cut,
    line_of,
    named,
    shown,
    wrapper_note,
)


def _applies(miss: RecompileCase) -> bool:
    return True


def _values(miss: RecompileCase) -> str:
    expected, actual = cut(miss.finding.expected), cut(miss.finding.actual)
    if expected and actual:
        return f"was {expected} at compilation and is {actual} now"
    if expected:
        return f"was {expected} at compilation and is not now"
    if actual:
        return f"is {actual} now, which doesn't match"
    return "has changed since compilation"


def _why(miss: RecompileCase) -> str:
    guard = shown(miss.finding.guard)
    told = f" The condition that failed: `{guard}`." if guard and guard != named(miss) else ""
    return (
        f"`{named(miss)}` {_values(miss)}, and `{called(miss)}` was compiled for its earlier "
        f"value.{told}{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name, function = named(miss), called(miss)
    where = f" {at_line(miss)}" if line_of(miss) else ""
    return [
        source(
            f"Find what changes `{name}` between the calls of `{function}`{where}: set it once "
            "before the first call, or read it in the caller and pass the result, a number as a "
            "tensor."
        ),
        leave(miss, "value"),
    ]


RULE = GuardRule(
    id="other-change",
    order=10_000,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
