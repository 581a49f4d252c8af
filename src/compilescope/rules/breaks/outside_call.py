"""A call that Dynamo cannot look into: clocks, files, the system, C extensions, skipped modules."""

from __future__ import annotations

import re

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakRule, Cause

_TYPES = (
    "Attempted to call function marked as skipped",
    "Attempted to inline function marked as skipped",
    "Unsupported function call",
    "Failed to trace builtin operator",
    "Unsupported method call",
)
_QUALNAME = re.compile(r"(?:qualname|builtin|method)[: ]+`?([\w.]+)")


def _applies(cause: Cause) -> bool:
    return cause.site.gb_type.startswith(_TYPES)


def _name(cause: Cause) -> str:
    name = called(cause.spot.expression)
    if name:
        return name
    match = _QUALNAME.search(cause.site.context)
    return match.group(1) if match else cause.text


def _why(cause: Cause) -> str:
    return (
        f"Dynamo can't trace into `{_name(cause)}`: it is C code, or code that Dynamo is set to "
        "skip. It runs between two graphs."
    )


def _remedies(cause: Cause) -> list[Remedy]:
    return [
        source(
            f"Call `{_name(cause)}` in the caller: before `{cause.function}`, passing in what it "
            "returns (as a tensor, if it is a number that changes), or after it, on what "
            f"`{cause.function}` returns."
        )
    ]


RULE = BreakRule(
    id="outside-call",
    category="skipped-function",
    order=80,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
