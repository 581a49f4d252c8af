"""A tensor has a different number of dimensions."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave
from compilescope.rules.recompiles._subjects import called, shown, wrapper_note

_SUFFIX = ".dim()"


def _applies(miss: GuardFailure) -> bool:
    return miss.cause.subject.endswith(_SUFFIX)


def _tensor(miss: GuardFailure) -> str:
    return shown(miss.cause.subject.removesuffix(_SUFFIX))


def _why(miss: GuardFailure) -> str:
    return (
        f"`{_tensor(miss)}` had {miss.cause.expected} dimension(s) when `{called(miss)}` was "
        f"compiled and has {miss.cause.actual} now. Sizes can vary within one graph; the number of "
        f"dimensions can't.{wrapper_note(miss)}"
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
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
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
