"""Whether a run's graphs were checked against a device, and its numbers against a reference.

What was not checked, or not to its end, never counts as passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from compilescope.model.bodies import (
    Benchmark,
    DiffOutcome,
    GraphCaptured,
    JobEnded,
    Measurement,
    TensorDiff,
    Violation,
)
from compilescope.model.run import Run

CheckState = Literal["pass", "fail", "unknown", "unchecked"]
_CHECKING = frozenset(
    ("mock_backend", "aot_mock_backend", "compilescope_mock", "compilescope_aot_mock")
)
"""Backends that check every graph against a device or constraints."""


class CheckResult(msgspec.Struct, frozen=True):
    """How a run fared in a check."""

    state: CheckState
    doubt: str = ""
    """Why some or all of it could not be told; what failed has failed all the same."""


def checked_constraints(run: Run, rows: Sequence[Benchmark]) -> CheckResult:
    """Passed only where every graph was checked to the end."""
    severities = Counter(body.severity for _, body in run.of(Violation))
    measured = [row.violations for row in rows if row.violations is not None]
    graphs = [pair for pair in run.of(GraphCaptured) if pair[1].stage == "dynamo"]
    partitioned = _partitioned(run)
    checked = sum(
        body.backend in _CHECKING or (event.pid, event.compile_id) in partitioned
        for event, body in graphs
    )
    doubt = ""
    if severities["unknown"]:
        doubt = f"the device's constraints could not tell {_times(severities['unknown'])}"
    elif 0 < checked < len(graphs):
        doubt = f"{len(graphs) - checked} of {len(graphs)} graphs were not checked"
    if severities["error"] or any(measured):
        return CheckResult("fail", doubt)
    if not (severities or measured or checked):
        return CheckResult("unchecked", "no device checked the graphs of this run")
    return _unless(doubt or _unfinished(run))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _partitioned(run: Run) -> set[tuple[int, str | None]]:
    """Compilations of adapters, which check a graph before they cut it up, whatever their name."""
    return {
        (event.pid, event.compile_id)
        for event, body in run.of(Measurement)
        if body.name == "islands"
    }


def checked_numbers(run: Run, rows: Sequence[Benchmark], jobs: Sequence[JobEnded]) -> CheckResult:
    """Passed only where every value that was compared agrees."""
    values = Counter(body.verdict for _, body in run.of(TensorDiff))
    whole = [body for _, body in run.of(DiffOutcome)]
    verdicts = {*values, *(body.verdict for body in whole)}
    verdicts |= {row.kerneldiff for row in rows if row.kerneldiff}
    verdicts |= {job.kerneldiff for job in jobs if job.kerneldiff}
    if not verdicts:
        return CheckResult("unchecked", "this run compares no numbers")
    doubt = next((body.reason for body in whole if body.verdict == "unknown"), "")
    if not doubt and values["unknown"]:
        doubt = f"{values['unknown']} of {sum(values.values())} values could not be judged"
    elif not doubt and "unknown" in verdicts:
        doubt = "a comparison of numbers came to no verdict"
    return CheckResult("fail", doubt) if "fail" in verdicts else _unless(doubt or _unfinished(run))


def _unfinished(run: Run) -> str:
    return "the run is still in progress" if run.live else run.cut_short or ""


def _unless(doubt: str) -> CheckResult:
    return CheckResult("unknown" if doubt else "pass", doubt)
