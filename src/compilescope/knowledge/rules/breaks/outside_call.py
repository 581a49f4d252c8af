"""A call that Dynamo cannot look into: clocks, files, the system, C extensions, skipped modules."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, judgement, source, upgrade
from compilescope.knowledge.rules.breaks._trees import called
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule

_TYPES = (
    "Attempted to call function marked as skipped",
    "Attempted to inline function marked as skipped",
    "Unsupported function call",
    "Failed to trace builtin operator",
    "Unsupported method call",
    "Call to a time function",
    "call to a callable object with no traceable __call__",
)
_TOLD = re.compile(r"(?:function|method|operator) `([\w.]+)`(?: of class `([\w.]+)`)?")
_MODULE = re.compile(r"module: torch\.")
_QUALNAME = re.compile(r"(?:qualname|builtin|method)[: ]+`?([\w.]+)")


def _applies(case: BreakCase) -> bool:
    return case.finding.gb_type.startswith(_TYPES)


def _name(case: BreakCase) -> str:
    name = called(case.spot.expression)
    if name:
        return name
    match = _QUALNAME.search(case.finding.context)
    return match.group(1) if match else case.text


def _torchs_own(case: BreakCase) -> str:
    """The function of PyTorch's that Dynamo does not trace, where the user's line calls another one
    that leads to it; else empty."""
    inner = case.finding.beneath
    told = _TOLD.search(case.finding.explanation)
    if inner is None:
        return ""
    name = inner.source[inner.column : inner.end_column].strip() or inner.function
    if told is not None:
        name = f"{told[2]}.{told[1]}" if told[2] else told[1]
    if inner.origin == "torch":
        return name
    by_torch = _MODULE.search(case.finding.context) is not None
    is_called = called(case.spot.expression).rpartition(".")[2] == name.rpartition(".")[2]
    return name if by_torch and not is_called else ""


def _why(case: BreakCase) -> str:
    own = _torchs_own(case)
    if own:
        return (
            f"`{case.text}` runs code of PyTorch's own, which calls `{own}`: Dynamo does not trace "
            "that, and it runs between two graphs."
        )
    return (
        f"Dynamo can't trace into `{_name(case)}`: it is C code, or code that Dynamo is set to "
        "skip. It runs between two graphs."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    if _torchs_own(case):
        return [
            judgement(
                f"Leave it: the break is in PyTorch's own code. What `{case.text}` computes before "
                "and after it is compiled all the same."
            ),
            upgrade("A newer PyTorch may trace it."),
        ]
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
