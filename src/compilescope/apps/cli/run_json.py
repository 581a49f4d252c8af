"""The values that `--json` prints of runs, sweeps and comparisons: every key is always there.

A record leaves out what is as usual; here a reader finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.benchmark_changes import BenchmarkComparison
    from compilescope.knowledge.analysis.comparison import RunComparison
    from compilescope.knowledge.analysis.sweeps import Regressions, Sweep


def run_comparison_value(seen: RunComparison) -> dict[str, Any]:
    """Two runs of a program compared."""
    from compilescope.knowledge.analysis.json_form import finding_json, findings_json

    value = msgspec.structs.asdict(seen)
    for name in ("gone", "new"):
        value[name] = findings_json(value[name])
    for name in ("moved", "changed", "retold"):
        value[name] = [
            {"before": finding_json(each.before), "after": finding_json(each.after)}
            for each in value[name]
        ]
    return value


def comparison_value(seen: BenchmarkComparison) -> dict[str, Any]:
    """Two benchmark runs compared."""
    value = msgspec.structs.asdict(seen)
    value["benchmarks"] = [_change(change) for change in seen.benchmarks]
    return value


def sweep_value(sweep: Sweep, changes: Regressions | None = None) -> dict[str, Any]:
    """`regressions` is null where there is no earlier sweep to compare with."""
    value = msgspec.structs.asdict(sweep)
    value["jobs"] = [_job(job) for job in sweep.jobs]
    value["machines"] = [msgspec.structs.asdict(machine) for machine in sweep.machines]
    return {**value, "regressions": None if changes is None else changes_value(changes)}


def changes_value(changes: Regressions) -> dict[str, Any]:
    value = msgspec.structs.asdict(changes)
    for name in ("new", "gone"):
        value[name] = [
            {"job": each.job, **msgspec.structs.asdict(each.cause)} for each in value[name]
        ]
    return value


def _job(job: msgspec.Struct) -> dict[str, Any]:
    value = msgspec.structs.asdict(job)
    return {**value, "causes": [msgspec.structs.asdict(cause) for cause in value["causes"]]}


def _change(change: msgspec.Struct) -> dict[str, Any]:
    value = msgspec.structs.asdict(change)
    sides = {side: msgspec.structs.asdict(value[side]) for side in ("before", "after")}
    return {**value, **sides}
