"""Two arguments are the same object in one call and different objects in another."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, shown

_IS = late(r"^(?P<one>\S+) is (?P<two>\S+)$")
_DUPLICATES = late(r'"([^"]+)"')


def _applies(miss: RecompileCase) -> bool:
    if miss.finding.subject == "aliasing of arguments" or miss.finding.guard.startswith(
        "Duplicate tensors"
    ):
        return True
    return miss.finding.guard_kind == "SHAPE" and _IS.match(miss.finding.subject) is not None


def _pair(miss: RecompileCase) -> list[str]:
    match = _IS.match(miss.finding.subject)
    names = [match["one"], match["two"]] if match else _DUPLICATES.findall(miss.finding.guard)
    return [shown(name) for name in names]


def _listed(names: list[str]) -> str:
    return " and ".join(f"`{name}`" for name in names) or "two arguments"


def _why(miss: RecompileCase) -> str:
    names = _listed(_pair(miss))
    if _IS.match(miss.finding.subject):
        change = f"{names} were the same object; now they are two objects"
    else:
        change = f"{names} were different tensors; now they are the same one"
    return (
        f"When `{called(miss)}` was compiled, {change}. A write to one shows through the other, so "
        "Dynamo doesn't let the two cases share a graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    names = _pair(miss)
    last = f"`{names[-1]}`" if names else "one of them"
    return [
        source(
            f"If nothing writes to them, pass a copy of {last} when both are the same tensor. If "
            f"they are meant to be the same, let `{called(miss)}` take it once."
        ),
        judgement("Otherwise, leave it: there are only two cases, and each is compiled once."),
    ]


RULE = GuardRule(
    id="aliasing",
    order=100,
    needs=("aliasing of arguments", "Duplicate tensors", " is "),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
