"""A dtype, device, tuple or other constant that changes."""

from __future__ import annotations

from compilescope.findings.remedy import Remedy, source
from compilescope.rules.causes.rule import GuardFailure, GuardRule
from compilescope.rules.recompiles._advice import leave
from compilescope.rules.recompiles._subjects import called, cut, named, reader, wrapper_note

_KINDS = ("EQUALS_MATCH", "CONSTANT_MATCH", "RANGE_ITERATOR_MATCH")


def _applies(miss: GuardFailure) -> bool:
    return miss.cause.kind in _KINDS and bool(miss.cause.expected and miss.cause.actual)


def _why(miss: GuardFailure) -> str:
    return (
        f"`{named(miss)}` was {cut(miss.cause.expected)} when `{called(miss)}` was compiled and is "
        f"{cut(miss.cause.actual)} now. {reader(miss)} reads it; it isn't a tensor, so its value "
        f"is a constant in the graph.{wrapper_note(miss)}"
    )


def _remedies(miss: GuardFailure) -> list[Remedy]:
    name = named(miss)
    return [
        source(
            f"If possible, do what depends on `{name}` in the caller, before or after calling "
            f"`{called(miss)}`."
        ),
        leave(miss, f"value of `{name}`"),
    ]


RULE = GuardRule(
    id="constant-change",
    order=490,
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
