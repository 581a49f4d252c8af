"""Which devices a run's graphs were checked against, and how each check came out.

What could not be told never counts as passed, nor does a part of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.check_results import checks_left_out
from compilescope.record.bodies import Benchmark, DeviceChecked, Violation
from compilescope.record.body import Verdict
from compilescope.record.run import Run


class DeviceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One device, and all of a run that was held against it."""

    device: str
    title: str
    outcome: Verdict
    graphs: int | None
    """None: the run does not say."""
    errors: int
    warnings: int
    unknown: int
    models: tuple[str, ...]
    """As the run names them."""


def device_checks(run: Run) -> list[DeviceCheck]:
    """In the order in which the run names them."""
    told: dict[str, list[DeviceChecked]] = {}
    for _, body in run.of(DeviceChecked):
        if body.whole:
            told[body.device] = []
        told.setdefault(body.device, []).append(body)
    rows: dict[str, list[Benchmark]] = {}
    for _, row in run.of(Benchmark):
        if row.constraints and row.violations is not None:
            rows.setdefault(row.constraints, []).append(row)
    refused: dict[str, list[Violation]] = {}
    for _, violation in run.of(Violation):
        refused.setdefault(violation.device, []).append(violation)
    doubt = checks_left_out(run) if told else ""
    return [
        _told(device, told[device], doubt)
        if device in told
        else _measured(device, rows[device])
        if device in rows
        else _refused(device, refused[device])
        for device in dict.fromkeys((*told, *rows, *refused))
    ]


def _told(device: str, bodies: Sequence[DeviceChecked], doubt: str) -> DeviceCheck:
    outcomes = {body.outcome for body in bodies}
    if doubt and not any(body.whole for body in bodies):
        outcomes.add("unknown")
    return DeviceCheck(
        device=device,
        title=next((body.title for body in bodies if body.title), ""),
        outcome="fail" if "fail" in outcomes else "unknown" if "unknown" in outcomes else "pass",
        graphs=sum(body.graphs for body in bodies),
        errors=sum(body.errors for body in bodies),
        warnings=sum(body.warnings for body in bodies),
        unknown=sum(body.unknown for body in bodies),
        models=_names(body.model for body in bodies),
    )


def _measured(device: str, rows: Sequence[Benchmark]) -> DeviceCheck:
    """A benchmark counts what a device refuses of each model."""
    errors = sum(row.violations or 0 for row in rows)
    return DeviceCheck(
        device=device,
        title="",
        outcome="fail" if errors else "pass",
        graphs=sum(row.graphs or 0 for row in rows),
        errors=errors,
        warnings=0,
        unknown=0,
        models=_names(row.model for row in rows),
    )


def _refused(device: str, bodies: Sequence[Violation]) -> DeviceCheck:
    """Of a run that tells what a device refused, and no more: none passes by that."""
    severities = [body.severity for body in bodies]
    return DeviceCheck(
        device=device,
        title="",
        outcome="fail" if "error" in severities else "unknown",
        graphs=None,
        errors=severities.count("error"),
        warnings=severities.count("warning"),
        unknown=severities.count("unknown"),
        models=_names(body.model for body in bodies),
    )


def _names(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in found if name))
