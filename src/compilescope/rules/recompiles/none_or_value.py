"""None in one call and a value in another."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave, one_module
from compilescope.rules.recompiles._subjects import (
    called,
    cut,
    inside,
    of_a_module,
    reader,
    shown,
    value_kind,
    wrapper_note,
)


def _applies(miss: GuardFailure) -> bool:
    expected, actual = value_kind(miss.cause.expected), value_kind(miss.cause.actual)
    return (expected == "none") != (actual == "none") and bool(
        miss.cause.expected and miss.cause.actual
    )


def _name(miss: GuardFailure) -> str:
    return inside(miss.cause.subject, "type") or miss.cause.subject


def _why(miss: GuardFailure) -> str:
    was, now = cut(miss.cause.expected), cut(miss.cause.actual)
    if inside(miss.cause.subject, "type"):
        was, now = (word if word in ("None", "NoneType") else f"a {word}" for word in (was, now))
    was, now = was.replace("NoneType", "None"), now.replace("NoneType", "None")
    return (
        f"`{shown(_name(miss))}` was {was} when `{called(miss)}` was compiled and is {now} now. "
        f"{reader(miss)} reads it, and code with and without it traces into different "
        f"graphs.{wrapper_note(miss)}"
    )


def _is_tensor(miss: GuardFailure) -> bool:
    """Numbers, texts and the like have no neutral value to pass."""
    kinds = {value_kind(miss.cause.expected), value_kind(miss.cause.actual)}
    return not kinds & {"bool", "int", "float", "str"} and not {
        miss.cause.expected,
        miss.cause.actual,
    } & {"bool", "int", "float", "str"}


def _remedies(miss: GuardFailure) -> list[Remedy]:
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
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
