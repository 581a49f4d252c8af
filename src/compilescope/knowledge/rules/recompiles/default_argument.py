"""The default of an argument differs between functions made from one `def`."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, cut, reader, shown

_DEFAULT = re.compile(r"^(?P<function>.+)\.__(?:kw)?defaults__\[(?P<which>[^\]]{1,200})\]")


def _applies(miss: RecompileCase) -> bool:
    return _DEFAULT.match(miss.finding.subject) is not None


def _parts(miss: RecompileCase) -> tuple[str, str]:
    match = _DEFAULT.match(miss.finding.subject)
    if match is None:
        return shown(miss.finding.subject), "an argument"
    which = match["which"].strip("'")
    return shown(match["function"]), "an argument" if which.isdigit() else f"`{which}`"


def _why(miss: RecompileCase) -> str:
    function, which = _parts(miss)
    return (
        f"`{called(miss)}` calls `{function}` without passing {which}, whose default was "
        f"{cut(miss.finding.expected)} at compilation and is {cut(miss.finding.actual)} now "
        f"({reader(miss)}). Defaults are constants in the graph, including numbers."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    function, which = _parts(miss)
    what = which if which.startswith("`") else "it"
    return [
        source(
            f"Pass {what} when you call `{function}`, from an argument of `{called(miss)}`. If it "
            "is only used in arithmetic, pass it as a tensor, which may change freely."
        ),
        leave(miss, "default"),
    ]


RULE = GuardRule(
    id="default-argument",
    order=420,
    needs=("defaults__[",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
