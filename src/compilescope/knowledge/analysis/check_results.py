"""Whether a run's graphs were checked against a device, and its numbers against a reference.

What was not checked, or not to its end, never counts as passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from compilescope.knowledge.analysis.program_end import how_it_ended
from compilescope.record.bodies import (
    Benchmark,
    CompileFailed,
    DeviceChecked,
    DiffOutcome,
    GraphCaptured,
    JobEnded,
    TensorDiff,
    Violation,
)
from compilescope.record.event import Event
from compilescope.record.run import Run

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
    """Passed only where every graph was checked to the end, as it ran or by `preflight` since."""
    whole = _checked_whole(run)
    outcomes = {body.outcome for body in whole.values()}
    severities = Counter(body.severity for _, body in run.of(Violation) if body.device not in whole)
    measured = [row.violations for row in rows if row.violations is not None]
    doubt = ""
    if severities["unknown"]:
        doubt = f"the device's constraints could not tell {_times(severities['unknown'])}"
    elif "unknown" in outcomes:
        unclear = [name for name, body in whole.items() if body.outcome == "unknown"]
        doubt = f"whether {' and '.join(unclear)} can run the graphs could not be told"
    elif not whole:
        doubt = _graphs_not_checked(run)
    if severities["error"] or any(measured) or "fail" in outcomes:
        return CheckResult("fail", doubt)
    if not (severities or measured or _asked(run)):
        return CheckResult("unchecked", "no device checked the graphs of this run")
    return _unless(doubt or _unfinished(run))


def checks_left_out(run: Run) -> str:
    """Why the devices that a program's backends asked may not have seen all of its graphs."""
    return _graphs_not_checked(run) or _unfinished(run)


def unplaced_violations(run: Run, rows: Sequence[Benchmark]) -> int:
    """What a device refused that no event has the place of: counted by benchmarks, `preflight`."""
    return sum(row.violations or 0 for row in rows) + sum(
        body.errors for body in _checked_whole(run).values()
    )


def _checked_whole(run: Run) -> dict[str, DeviceChecked]:
    """The last check of all graphs, for each device."""
    return {body.device: body for _, body in run.of(DeviceChecked) if body.whole}


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _asked(run: Run) -> bool:
    """Does anything of the run check graphs, whether it came to do so or not?"""
    return run.count(DeviceChecked) > 0 or any(
        body.backend in _CHECKING for _, body in _graphs(run)
    )


def _graphs(run: Run) -> list[tuple[Event, GraphCaptured]]:
    return [pair for pair in run.of(GraphCaptured) if pair[1].stage == "dynamo"]


def _graphs_not_checked(run: Run) -> str:
    """How many graphs no backend has checked, where one was asked to; empty where all were."""
    graphs = _graphs(run)
    if not _asked(run):
        return ""
    told = {(event.pid, event.compile_id) for event, _ in run.of(DeviceChecked)}
    told |= {(event.pid, event.compile_id) for event, _ in run.of(Violation)}
    told -= _failed_unjudged(run)
    missed = sum((event.pid, event.compile_id) not in told for event, _ in graphs)
    if not missed:
        return ""
    if len(graphs) == 1:
        return "its one graph was not checked"
    return f"{missed} of {len(graphs)} graphs {'was' if missed == 1 else 'were'} not checked"


def _failed_unjudged(run: Run) -> set[tuple[int, str | None]]:
    """Compilations that raised, and not because a device refused their graph.

    As where the settings of the check are no settings: nobody has looked at the graph.
    """
    judged = {(event.pid, event.compile_id) for event, _ in run.of(Violation)}
    return {(event.pid, event.compile_id) for event, _ in run.of(CompileFailed)} - judged


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
    """Why a run may have had more to check than there is in it."""
    if run.live:
        return "the run is still in progress"
    if run.cut_short:
        return run.cut_short
    if run.count(DiffOutcome):
        return ""  # A comparison has come to its end, and its status is its verdict.
    ended = how_it_ended(run)
    return "" if ended.in_order else ended.text.rstrip(".")


def _unless(doubt: str) -> CheckResult:
    return CheckResult("unknown" if doubt else "pass", doubt)
