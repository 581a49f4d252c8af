"""Calls inside and outside autocast, or with different autocast dtypes."""

from __future__ import annotations

from compilescope.knowledge.findings.remedy import Remedy, source
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles._advice import leave
from compilescope.knowledge.rules.recompiles._subjects import (
    called,
    dispatch_tensor,
    dtype_of_code,
    keys_gone_and_new,
    shown,
)
from compilescope.record.python_text import read_literal

_DEVICES = ("cpu", "cuda")
"""The first two of torch's list of devices with autocast; the rest are told by number."""


def _applies(miss: RecompileCase) -> bool:
    if miss.finding.subject == "autocast_state":
        return True
    gone, new = keys_gone_and_new(miss)
    changed = gone | new
    return bool(changed) and all(key.startswith("Autocast") for key in changed)


def _state(text: str) -> dict[str, str]:
    """Device -> "off", or the dtype to which autocast casts there."""
    try:
        state = read_literal(text)
        pairs = list(zip(state["enabled"], state["dtype"], strict=False))
    except (ValueError, TypeError, KeyError):
        return {}
    found = {}
    for index, (enabled, dtype) in enumerate(pairs):
        device = _DEVICES[index] if index < len(_DEVICES) else f"device type {index}"
        found[device] = dtype_of_code(str(dtype)) if enabled else "off"
    return found


def _change(miss: RecompileCase) -> str:
    was, now = _state(miss.finding.expected), _state(miss.finding.actual)
    changes = [
        f"{device}: {was[device]} before, {now[device]} now"
        for device in was
        if device in now and was[device] != now[device]
    ]
    return f" ({'; '.join(changes)})" if changes else ""


def _why(miss: RecompileCase) -> str:
    tensor = dispatch_tensor(miss)
    about = f"which changes how operations on `{shown(tensor)}` are dispatched" if tensor else ""
    return (
        f"Autocast has changed since `{called(miss)}` was "
        f"compiled{_change(miss)}{', ' + about if about else ''}. The casts are part of the graph, "
        "so each autocast setting needs its own graph."
    )


def _remedies(miss: RecompileCase) -> list[Remedy]:
    function = called(miss)
    return [
        source(
            f"Call `{function}` under the same `torch.autocast(...)` every time, including warm-up "
            "and evaluation, if that precision is good enough."
        ),
        leave(miss, "autocast setting"),
    ]


RULE = GuardRule(
    id="autocast",
    order=40,
    needs=("autocast_state", "dispatch keys"),
    applies=_applies,
    why=_why,
    remedies=_remedies,
)
