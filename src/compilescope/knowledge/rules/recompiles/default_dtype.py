"""The default dtype changed."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, dtype_of_code


def _applies(miss: RecompileCase) -> bool:
    return miss.finding.subject == "default_dtype"


def _why(miss: RecompileCase) -> str:
    was, now = dtype_of_code(miss.finding.expected), dtype_of_code(miss.finding.actual)
    return (
        f"The default dtype was {was} when `{called(miss)}` was compiled and is {now} now. New "
        "tensors and results of Python numbers use it, so every graph depends on it."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    return [
        source(
            f"Set the default dtype once, before the first call of `{called(miss)}`, and don't "
            "change it. Code that changes it temporarily, such as a loader, should be done by "
            "then."
        )
    ]


RULE = GuardRule(
    id="default-dtype",
    order=60,
    needs=("default_dtype",),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
