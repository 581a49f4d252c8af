"""An argument of a different type."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    cut,
    inside,
    reader,
    shown,
    value_kind,
    wrapper_note,
)

_SORTS = ("bool", "int", "float", "str", "tensor")
_WORDS = {"tensor": "torch.Tensor"}


def _types(miss: RecompileCase) -> tuple[str, str] | None:
    """(at compilation, now), where the two differ in type."""
    if inside(miss.finding.subject, "type"):
        return cut(miss.finding.expected) or "one type", cut(miss.finding.actual) or "another type"
    was, now = value_kind(miss.finding.expected), value_kind(miss.finding.actual)
    if was not in _SORTS or not miss.finding.actual or miss.finding.guard_kind == "SHAPE":
        return None
    if now in _SORTS and was != now:
        return _WORDS.get(was, was), _WORDS.get(now, now)
    if now == "other" and was != "str" and not _is_mark(miss):
        return was, _type_told(miss.finding.actual)
    return None


def _type_told(value: str) -> str:
    """The type of a value that is told by its items or as an object."""
    brackets = {"[": "list", "(": "tuple", "{": "dict" if ": " in value or value == "{}" else "set"}
    return brackets.get(value[0]) or cut(value.removeprefix("<").removesuffix(" object>"))


def _is_mark(miss: RecompileCase) -> bool:
    return miss.finding.subject.startswith(("hasattr(", "___"))


def _name(miss: RecompileCase) -> str:
    return shown(inside(miss.finding.subject, "type") or miss.finding.subject)


def _applies(miss: RecompileCase) -> bool:
    return _types(miss) is not None


def _why(miss: RecompileCase) -> str:
    was, now = _types(miss) or ("another type", "this one")
    if was == now:
        return (
            f"`{_name(miss)}` is of type {now}, but not of the same class as when `{called(miss)}` "
            "was compiled: two classes of that name exist, one of them redefined (inside a "
            f"function, or by a reload).{wrapper_note(miss)}"
        )
    return (
        f"`{_name(miss)}` was of type {was} when `{called(miss)}` was compiled and is of type "
        f"{now} now; {reader(miss)} reads it. Python code behaves differently for different types, "
        f"so each has its own graph.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    was, now = _types(miss) or ("", "")
    name = _name(miss)
    if was == now:
        return [
            source(
                f"Define the class `{now}` once, at module level, so that every `{name}` has the "
                "same class."
            )
        ]
    return [
        source(
            f"Create every `{name}` as one type, `{was}` or `{now}`, if one can replace the other."
        ),
        leave(miss, "type"),
    ]


RULE = GuardRule(
    id="type-change",
    order=320,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
