"""A global variable, or something reached through one, has changed."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave
from compilescope.rules.recompiles._subjects import both, called, cut, is_global, reader, shown


def _applies(miss: GuardFailure) -> bool:
    return is_global(miss.cause.subject) and miss.cause.kind not in ("TENSOR_MATCH", "SHAPE")


def _why(miss: GuardFailure) -> str:
    return (
        f"{reader(miss)} reads `{shown(miss.cause.subject)}`, a global or something reached "
        f"through one. It was {cut(miss.cause.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.cause.actual)} now. In the graph it is a constant."
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    name, function = shown(miss.cause.subject), called(miss)
    if both(miss, "int", "float"):
        first = source(
            f"Pass `{name}` to `{function}` as an argument, or, if it is only used in arithmetic, "
            "make it a tensor: a tensor's value is not part of the graph."
        )
    else:
        first = source(
            f"Set `{name}` before the first call of `{function}` and don't change it. If it must "
            "change, write a function for each value and choose in the caller."
        )
    return [first, leave(miss, f"value of `{name}`")]


RULE = GuardRule(
    id="global-change",
    order=400,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
