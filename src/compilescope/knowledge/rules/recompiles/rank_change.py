"""A tensor has a different number of dimensions."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import called, shown, wrapper_note

_SUFFIX = ".dim()"


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject.endswith(_SUFFIX)


def _tensor(miss: RecompileCase) -> str:
    return shown(miss.finding.subject.removesuffix(_SUFFIX))


def _why(miss: RecompileCase) -> str:
    return (
        f"`{_tensor(miss)}` had {miss.finding.expected} dimension(s) when `{called(miss)}` was "
        f"compiled and has {miss.finding.actual} now. Sizes can vary within one graph; the number of "
        f"dimensions can't.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor = _tensor(miss)
    return [
        source(
            f"Give `{tensor}` the same number of dimensions in every call (a batch of one, "
            f"`{tensor}.unsqueeze(0)`, for a single sample), and undo it on the result, if "
            f"`{called(miss)}` treats both alike."
        ),
        leave(miss, "number of dimensions"),
    ]


RULE = GuardRule(
    id="rank-change",
    order=170,
    needs=(".dim()",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
