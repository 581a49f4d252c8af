"""A size of 0 or 1, which Dynamo keeps separate even where sizes are dynamic."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, shown, size_of, wrapper_note

_SMALL = ("0", "1")


def _applies(miss: RecompileCase) -> bool:
    if size_of(miss.finding.subject) is None:
        return False
    if miss.finding.guard_kind == "SHAPE":
        return miss.finding.actual in _SMALL and miss.finding.guard.startswith("2 <= ")
    return miss.finding.actual in _SMALL or miss.finding.expected in _SMALL


def _parts(miss: RecompileCase) -> tuple[str, int]:
    return size_of(miss.finding.subject) or (miss.finding.subject, 0)


def _why(miss: RecompileCase) -> str:
    tensor, dim = _parts(miss)
    if miss.finding.expected in _SMALL:
        change = f"was {miss.finding.expected} at compilation and is {miss.finding.actual} now"
    else:
        change = f"is {miss.finding.actual}"
    return (
        f"Dimension {dim} of `{shown(tensor)}` {change}. A size of 1 broadcasts and a size of 0 is "
        "empty, so Dynamo never lets them share a graph with other sizes, even when marked "
        f"dynamic.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, dim = _parts(miss)
    return [
        judgement(
            f"Leave it: `{called(miss)}` is compiled once for 0 and once for 1, and no more. Warm "
            "up with a real size, so that the first compilation isn't wasted."
        ),
        source(
            f"Or pad dimension {dim} of `{shown(tensor)}` to at least 2 and crop the result, if "
            f"`{called(miss)}` can ignore the padding."
        ),
    ]


RULE = GuardRule(
    id="size-zero-one",
    order=210,
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
