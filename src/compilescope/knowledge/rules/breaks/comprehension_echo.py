"""A comprehension compiled by itself: what is left of a function that broke before.

On Python 3.11 and older a comprehension is a frame of its own. When the function around it is
given up at an earlier break, Dynamo meets the comprehension alone, with an iterator for an
argument, and breaks there. It goes away with the earlier break.
"""

from __future__ import annotations

import ast

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.breaks._trees import shown
from compilescope.knowledge.rules.causes.rule import BreakCase, BreakRule

_ITERATOR_TYPES = ("Missing tp_iternext", "Missing tp_iter")
_ITERATOR_METHODS = late(r"^name=__(next|iter)__,|iterator\) __next__ ")
"""In the context of a type that is not for iterators alone, in the words of torch 2.15 and 2.11."""


def _applies(case: BreakCase) -> bool:
    finding = case.finding
    if not (
        finding.gb_type.startswith(_ITERATOR_TYPES) or _ITERATOR_METHODS.search(finding.context)
    ):
        return False
    return case.spot.in_comprehension


def _why(case: BreakCase) -> str:
    return (
        f"The comprehension in `{case.function}` was compiled separately, because the function "
        "around it fell back to eager at an earlier break. Its iterator can't be a graph input."
    )


def _subject(case: BreakCase) -> str:
    """The variable that the comprehension fills, or else the comprehension."""
    statement = case.spot.statement
    if isinstance(statement, ast.Assign):
        return shown(statement.targets[0])
    return case.text


def _remedies(case: BreakCase) -> list[Remedy]:
    return [
        judgement(
            f"Fix the earlier break. This one, at `{_subject(case)}`, is a side effect of it and "
            "disappears with it."
        )
    ]


RULE = BreakRule(
    id="comprehension-echo",
    category="reconstruction",
    order=4,
    echo=True,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
