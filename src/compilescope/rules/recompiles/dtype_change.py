"""A tensor has a different dtype."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, judgement, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave
from compilescope.rules.recompiles._subjects import called, of_a_module, shown, wrapper_note

_SUFFIX = ".dtype"


def _applies(miss: GuardFailure) -> bool:
    return miss.cause.subject.endswith(_SUFFIX) and miss.cause.kind == "TENSOR_MATCH"


def _tensor(miss: GuardFailure) -> str:
    return shown(miss.cause.subject.removesuffix(_SUFFIX))


def _why(miss: GuardFailure) -> str:
    return (
        f"`{_tensor(miss)}` was {miss.cause.expected} when `{called(miss)}` was compiled and is "
        f"{miss.cause.actual} now. A graph is specific to the dtypes of its "
        f"inputs.{wrapper_note(miss)}"
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    tensor, function = _tensor(miss), called(miss)
    if of_a_module(miss.cause.subject):
        return [
            source(
                f"Convert the module to its dtype before the first call of `{function}`, not "
                "between calls."
            ),
            leave(miss, "dtype"),
        ]
    return [
        judgement(
            f"If one dtype is enough, settle on it where `{tensor}` is created (NumPy gives "
            "float64, a list of Python ints int64), though the results may change. If "
            f"`{function}` serves both, two compilations are right."
        ),
    ]


RULE = GuardRule(
    id="dtype-change",
    order=150,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
