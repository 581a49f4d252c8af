"""Two sizes that were equal at compilation no longer are."""

from __future__ import annotations

import re

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import at_line, called, shown, size_of

_EQUAL = re.compile(r"^(?P<one>\S+\.size\(\)\[\d+\]) == (?P<two>\S+\.size\(\)\[\d+\])$")


def _sizes(miss: RecompileCase) -> list[tuple[str, int]]:
    match = _EQUAL.match(miss.finding.guard)
    pair = [size_of(match["one"]), size_of(match["two"])] if match else []
    return [size for size in pair if size is not None]


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.guard_kind == "SHAPE" and len(_sizes(miss)) == 2


def _why(miss: RecompileCase) -> str:
    return (
        f"When `{called(miss)}` was compiled, `{shown(miss.finding.guard)}` held, so Dynamo made the "
        f"two sizes one variable. In this call they are {miss.finding.actual}."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"If they are equal only by chance, warm up `{called(miss)}` with two calls in which "
            "all sizes differ: Dynamo then makes them two variables."
        ),
        judgement(
            f"Leave it if the code needs them to be equal {at_line(miss)}: this call is then a "
            "different case, with its own graph."
        ),
    ]


RULE = GuardRule(
    id="equal-sizes",
    order=230,
    needs=(".size()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
