"""A tensor has a different dtype."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    of_a_module,
    shown,
    wrapper_note,
)

_SUFFIX = ".dtype"


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject.endswith(_SUFFIX) and miss.finding.guard_kind == "TENSOR_MATCH"


def _tensor(miss: RecompileCase) -> str:
    return shown(miss.finding.subject.removesuffix(_SUFFIX))


def _why(miss: RecompileCase) -> str:
    return (
        f"`{_tensor(miss)}` was {miss.finding.expected} when `{called(miss)}` was compiled and is "
        f"{miss.finding.actual} now. A graph is specific to the dtypes of its "
        f"inputs.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, function = _tensor(miss), called(miss)
    if of_a_module(miss.finding.subject):
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
    needs=(".dtype",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
