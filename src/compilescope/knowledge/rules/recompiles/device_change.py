"""A tensor is on a different device."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    device_among,
    dispatch_tensor,
    keys_gone_and_new,
    of_a_module,
    shown,
    wrapper_note,
)

_INDEX = ".device.index"


def _devices(miss: RecompileCase) -> tuple[str, str] | None:
    """(at compilation, now)"""
    if miss.finding.subject.endswith(_INDEX):
        was, now = miss.finding.expected, miss.finding.actual
        # Only a CPU tensor has no index.
        return tuple("cpu" if index == "None" else f"index {index}" for index in (was, now))  # type: ignore[return-value]
    gone, new = keys_gone_and_new(miss)
    was, now = device_among(gone), device_among(new)
    return (was, now) if was and now and was != now else None


def _tensor(miss: RecompileCase) -> str:
    return shown(dispatch_tensor(miss) or miss.finding.subject.removesuffix(_INDEX))


def _applies(miss: RecompileCase) -> bool:
    return _devices(miss) is not None


def _why(miss: RecompileCase) -> str:
    was, now = _devices(miss) or ("another device", "this one")
    return (
        f"`{_tensor(miss)}` was on {was} when `{called(miss)}` was compiled and is on {now} now. A "
        f"graph is specific to the devices of its inputs.{wrapper_note(miss)}"
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    tensor, function = _tensor(miss), called(miss)
    was, now = _devices(miss) or ("the first device", "this one")
    both = judgement(
        f"If `{function}` really runs on both, two compilations are right: one for {was}, one for "
        f"{now}."
    )
    if of_a_module(miss.finding.subject) or of_a_module(dispatch_tensor(miss)):
        return [
            source(
                f"Move the module to its device before the first call of `{function}`, not between calls."
            ),
            both,
        ]
    return [
        source(
            f"Create `{tensor}` on one device for every call, including warm-up: a stray first "
            f"call on {was} costs a compilation that is never reused."
        ),
        both,
    ]


RULE = GuardRule(
    id="device-change",
    order=120,
    needs=(".device.index", "dispatch keys"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
