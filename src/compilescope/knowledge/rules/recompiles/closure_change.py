"""A variable of the enclosing function has changed."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    both,
    called,
    cut,
    is_closed_over,
    is_path,
    line_of,
    shown,
)

_CELL = late(r"^(?P<function>.+)\.__closure__\[\d+\]\.cell_contents$")


def _applies(miss: RecompileCase) -> bool:
    subject = miss.finding.subject
    if miss.finding.guard_kind in ("TENSOR_MATCH", "SHAPE"):
        return False
    if _CELL.match(subject):
        return True
    return subject.isidentifier() and is_path(subject) and is_closed_over(miss, subject)


def _name(miss: RecompileCase) -> str:
    match = _CELL.match(miss.finding.subject)
    return (
        f"a variable that `{shown(match['function'])}` closes over"
        if match
        else f"`{miss.finding.subject}`"
    )


def _why(miss: RecompileCase) -> str:
    line = line_of(miss)
    where = f" in `{line}`" if line else ""
    return (
        f"`{called(miss)}` uses {_name(miss)}{where}, which belongs to the enclosing function. It "
        f"was {cut(miss.finding.expected)} at compilation and is {cut(miss.finding.actual)} now. All "
        "closures made from one `def` share its compilations."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    if both(miss, "int", "float"):
        first = source(
            f"Make {_what(miss)} an argument of `{called(miss)}`, and compile `{called(miss)}` "
            "once. If it is only used in arithmetic, pass it as a tensor, which may change "
            "freely."
        )
    else:
        first = source(
            f"Write a function for each case that {_what(miss)} selects, and compile each: "
            "functions with their own `def` don't share compilations."
        )
    return [first, leave(miss, "value")]


def _what(miss: RecompileCase) -> str:
    match = _CELL.match(miss.finding.subject)
    return (
        f"what `{shown(match['function'])}` closes over" if match else f"`{miss.finding.subject}`"
    )


RULE = GuardRule(
    id="closure-change",
    order=410,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
