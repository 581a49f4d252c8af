"""None in one call and a value in another."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave, one_module
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    cut,
    inside,
    of_a_module,
    reader,
    shown,
    value_kind,
    wrapper_note,
)


def _applies(miss: RecompileCase) -> bool:
    expected, actual = value_kind(miss.finding.expected), value_kind(miss.finding.actual)
    return (expected == "none") != (actual == "none") and bool(
        miss.finding.expected and miss.finding.actual
    )


def _name(miss: RecompileCase) -> str:
    return inside(miss.finding.subject, "type") or miss.finding.subject


def _why(miss: RecompileCase) -> str:
    was, now = cut(miss.finding.expected), cut(miss.finding.actual)
    if inside(miss.finding.subject, "type"):
        was, now = (word if word in ("None", "NoneType") else f"a {word}" for word in (was, now))
    was, now = was.replace("NoneType", "None"), now.replace("NoneType", "None")
    return (
        f"`{shown(_name(miss))}` was {was} when `{called(miss)}` was compiled and is {now} now. "
        f"{reader(miss)} reads it, and code with and without it traces into different "
        f"graphs.{wrapper_note(miss)}"
    )


def _is_tensor(miss: RecompileCase) -> bool:
    """Numbers, texts and the like have no neutral value to pass."""
    kinds = {value_kind(miss.finding.expected), value_kind(miss.finding.actual)}
    return not kinds & {"bool", "int", "float", "str"} and not {
        miss.finding.expected,
        miss.finding.actual,
    } & {"bool", "int", "float", "str"}


def _remedies(miss: RecompileCase) -> list[Remedy]:
    subject = _name(miss)
    name = shown(subject)
    cases = leave(miss, "of the two cases")
    if of_a_module(subject) and ("._parameters[" in subject or "._modules[" in subject):
        return [one_module(miss), cases]
    if of_a_module(subject):
        return [
            source(
                f"Initialize `{name}` with a tensor of its final shape instead of None, if one "
                "exists that changes nothing (such as zeros for something that is added)."
            ),
            cases,
        ]
    if not _is_tensor(miss):
        return [cases]
    return [
        source(
            f"Always pass `{name}`, if one exists that changes nothing: zeros for something that "
            "is added, ones for a factor."
        ),
        cases,
    ]


RULE = GuardRule(
    id="none-or-value",
    order=290,
    needs=("None",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
