"""A different function is called in the same place."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, is_global, reader, shown

_CODE = ".__code__"


def _applies(miss: RecompileCase) -> bool:
    if miss.finding.subject.endswith((_CODE, ".__func__")):
        return True
    return miss.finding.expected == "the same object" and miss.finding.actual.startswith(
        ("<function ", "<code of ")
    )


def _name(miss: RecompileCase) -> str:
    return shown(miss.finding.subject.removesuffix(_CODE).removesuffix(".__func__"))


def _now(miss: RecompileCase) -> str:
    actual = miss.finding.actual
    for start in ("<code of ", "<function "):
        if actual.startswith(start):
            return f"it is now `{actual.removeprefix(start).removesuffix('>')}`"
    if miss.finding.guard_kind == "ACCESSOR":
        return "it is now something other than a Python function (a builtin, a module, a partial)"
    return "it is now a different one"


def _why(miss: RecompileCase) -> str:
    return (
        f"`{_name(miss)}`, called by {reader(miss)}, was a different function when "
        f"`{called(miss)}` was compiled; {_now(miss)}. Dynamo traces into called functions, so "
        "each function needs its own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    name, function = _name(miss), called(miss)
    if is_global(miss.finding.subject):
        return [
            source(
                f"Don't rebind the global `{name}` between calls (a redefinition, a monkey patch, "
                "a notebook cell run again): give the two functions two names, each with its own "
                "compiled caller."
            ),
            leave(miss, "of them"),
        ]
    return [
        source(
            "Write a separate caller for each function you pass, and compile each, rather than "
            f"`{function}` with `{name}` as an argument."
        ),
        leave(miss, "of them"),
    ]


RULE = GuardRule(
    id="function-change",
    order=330,
    needs=(".__code__", ".__func__", "the same object"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
