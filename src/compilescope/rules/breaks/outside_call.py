"""A call that Dynamo cannot look into: clocks, files, the system, C extensions, skipped modules."""

from __future__ import annotations

import re

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.breaks._trees import called
from compilescope.rules.causes.rule import BreakCase, BreakRule

_TYPES = (
    "Attempted to call function marked as skipped",
    "Attempted to inline function marked as skipped",
    "Unsupported function call",
    "Failed to trace builtin operator",
    "Unsupported method call",
    "Call to a time function",
    "call to a callable object with no traceable __call__",
)
_QUALNAME = re.compile(r"(?:qualname|builtin|method)[: ]+`?([\w.]+)")


def _applies(case: BreakCase) -> bool:
    return case.finding.gb_type.startswith(_TYPES)


def _name(case: BreakCase) -> str:
    name = called(case.spot.expression)
    if name:
        return name
    match = _QUALNAME.search(case.finding.context)
    return match.group(1) if match else case.text


def _why(case: BreakCase) -> str:
    return (
        f"Dynamo can't trace into `{_name(case)}`: it is C code, or code that Dynamo is set to "
        "skip. It runs between two graphs."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        source(
            f"Call `{_name(case)}` in the caller: before `{case.function}`, passing in what it "
            "returns (as a tensor, if it is a number that changes), or after it, on what "
            f"`{case.function}` returns."
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
