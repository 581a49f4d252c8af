"""A symbolic size, or a comparison of one, given where an operator takes a plain value."""

from __future__ import annotations

import ast
import re

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.breaks._trees import shown
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule

_REFUSED = re.compile(
    r"argument '(?P<name>\w+)'(?: \(position (?P<position>\d+)\))? must be (?P<kind>bool|int|float), "
    r"not Sym(?P<given>Bool|Int|Float)"
)


def _match(case: BreakCase) -> re.Match[str] | None:
    found = _REFUSED.search(case.finding.context) or _REFUSED.search(case.finding.explanation)
    # Another kind would be refused in eager mode too.
    return found if found is not None and found["given"].lower() == found["kind"] else None


def _applies(case: BreakCase) -> bool:
    return _match(case) is not None


def _given(case: BreakCase) -> str:
    """The argument as its author wrote it; empty where the source does not show it."""
    match, call = _match(case), case.spot.expression
    if match is None or not isinstance(call, ast.Call):
        return ""
    for keyword in call.keywords:
        if keyword.arg == match["name"]:
            return shown(keyword.value)
    at = int(match["position"] or 0) - 1
    plain = not any(isinstance(each, ast.Starred) for each in call.args)
    return shown(call.args[at]) if plain and 0 <= at < len(call.args) else ""


def _why(case: BreakCase) -> str:
    match = _match(case)
    assert match is not None
    given = _given(case)
    what = f"`{given}`" if given else f"the value given as `{match['name']}`"
    return (
        f"`{case.text}` takes a plain {match['kind']} as `{match['name']}`, and {what} is symbolic: "
        "it depends on a size that varies between calls. Eager mode, where sizes are plain numbers, "
        "raises nothing."
    )


def _remedies(case: BreakCase) -> list[Remedy]:
    match = _match(case)
    assert match is not None
    given = _given(case) or f"the value of `{match['name']}`"
    if match["kind"] == "bool":
        written = f"`True if {given} else False`" if _given(case) else "`True if ... else False`"
        return [
            source(
                f"Make it plain: give {written} as `{match['name']}`. Dynamo then compiles one graph "
                "for each outcome."
            )
        ]
    quoted = f"`{given}`" if _given(case) else given
    return [
        source(
            f"Make it plain: work {quoted} out in the caller and pass the number to "
            f"`{case.function}`, or keep that size the same. Each value then has a graph of its own."
        )
    ]


RULE = BreakRule(
    id="symbolic-value",
    category="missing-kernel",
    order=44,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
