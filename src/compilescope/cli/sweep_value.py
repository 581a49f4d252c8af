"""A sweep as JSON: every key is always there."""

from __future__ import annotations

from typing import Any

import msgspec

from compilescope.rules.sweeps import Regressions, Sweep


def sweep_value(sweep: Sweep, changes: Regressions | None = None) -> dict[str, Any]:
    """`regressions` is null where there is no earlier sweep to compare with."""
    value = msgspec.structs.asdict(sweep)
    value["jobs"] = [_job(job) for job in sweep.jobs]
    value["machines"] = [_whole(machine) for machine in sweep.machines]
    return {**value, "regressions": None if changes is None else changes_value(changes)}


def changes_value(changes: Regressions) -> dict[str, Any]:
    value = msgspec.structs.asdict(changes)
    for name in ("new", "gone"):
        value[name] = [{"job": each.job, **_whole(each.cause)} for each in value[name]]
    return value


def _job(job: msgspec.Struct) -> dict[str, Any]:
    value = _whole(job)
    return {**value, "causes": [_whole(cause) for cause in value["causes"]]}


def _whole(struct: msgspec.Struct) -> dict[str, Any]:
    """A record leaves out what is as usual; here a reader finds it."""
    return msgspec.structs.asdict(struct)
