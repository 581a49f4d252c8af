"""The gate for benchmarks: compiled rows against eager mode, or against an earlier run.

Each row is judged by itself. An interval that spans the limit decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.knowledge.analysis.benchmark_changes import (
    NO_CONTROL,
    NOISY_CONTROL,
    TOO_FEW,
    BenchmarkChange,
    Change,
    benchmark_changes,
    row_name,
)
from compilescope.knowledge.analysis.benchmarks import EAGER, setup_of
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.terms import GateCheck, GateLimits
from compilescope.record.benchmark import Benchmark, Interval
from compilescope.record.body import Verdict

_COUNTED = {
    "breaks": ("graph break", "graph breaks"),
    "recompiles": ("recompile", "recompiles"),
    "graphs": ("graph", "graphs"),
    "violations": ("violation", "violations"),
}
_UNSEEN = {
    "eager": "a benchmark does not record functions that fell back to eager",
    "coverage": "a benchmark does not record coverage",
}
_MORE = "measure it with more --runs or on an idle machine"


def benchmark_checks(digest: Digest, limits: GateLimits, earlier: Digest | None) -> list[GateCheck]:
    """None for a run without benchmarks."""
    if not digest.benchmarks:
        return []
    compiled = [row for row in digest.benchmarks if row.backend != EAGER]
    checks = [
        _at_most(name, compiled, limit)
        for name in _COUNTED
        if (limit := getattr(limits, name)) is not None
    ]
    checks += [
        GateCheck(name=name, outcome="unknown", message=why, limit=getattr(limits, name))
        for name, why in _UNSEEN.items()
        if getattr(limits, name) is not None
    ]
    if limits.failures is not None:
        checks.append(_failures(digest, limits.failures))
    if limits.slowdown is not None:
        checks += _slowdowns(digest, limits.slowdown, earlier)
    return checks


def _slowdowns(digest: Digest, limit: float, earlier: Digest | None) -> list[GateCheck]:
    compiled = [row for row in digest.benchmarks if row.backend != EAGER]
    if earlier is None:
        found = [_against_eager(row, limit) for row in compiled]
    else:
        found = list(_against(earlier, digest, limit))
    return found or [_unknown("", "no compiled backend was measured", limit)]


def _at_most(name: str, rows: list[Benchmark], limit: int) -> GateCheck:
    """Of the row with the most; one whose number is not known may have more."""
    known = [row for row in rows if getattr(row, name) is not None]
    worst = max(known, key=lambda row: getattr(row, name), default=None)
    if worst is not None and getattr(worst, name) > limit:
        found = getattr(worst, name)
        message = f"{row_name(worst)}: {_counted(name, found)}, at most {limit} allowed"
        return GateCheck(name=name, outcome="fail", message=message, found=found, limit=limit)
    if worst is None or len(known) < len(rows):
        blank = next((row_name(row) for row in rows if row not in known), "")
        what = f"the number of {_COUNTED[name][1]} is unknown"
        message = f"{blank}: {what}" if blank else what
        return GateCheck(name=name, outcome="unknown", message=message, limit=limit)
    found = getattr(worst, name)
    message = f"at most {_counted(name, found)} in each benchmark, at most {limit} allowed"
    return GateCheck(name=name, outcome="pass", message=message, found=found, limit=limit)


def _counted(name: str, number: int) -> str:
    return f"{number} {_COUNTED[name][number != 1]}"


def _failures(digest: Digest, limit: int) -> GateCheck:
    """Those without figures, and those whose results differ from eager mode's."""
    found = tuple(finding for finding in findings(digest) if finding.kind == "failure")
    noun = "failed benchmark" if len(found) == 1 else "failed benchmarks"
    message = f"{len(found)} {noun}, at most {limit} allowed"
    failed = len(found) > limit
    return GateCheck(
        name="failures",
        outcome="fail" if failed else "pass",
        message=message,
        found=len(found),
        limit=limit,
        findings=found if failed else (),
    )


def _against_eager(row: Benchmark, limit: float) -> GateCheck:
    subject = row_name(row)
    if row.speedup is None or row.speedup <= 0:
        why = "no figures" if row.latency_ms is None else "no speed-up over eager mode was measured"
        why = f"the runs are too noisy to tell; {_MORE}" if row.too_noisy else why
        return _unknown(subject, f"{subject}: {why}", limit)
    if row.speedup_ci is None:
        return _unknown(subject, f"{subject}: {TOO_FEW}; {_MORE}", limit)
    return _judged(subject, Change(row.speedup, row.speedup_ci), limit, "the time of eager mode")


def _against(earlier: Digest, later: Digest, limit: float) -> Iterator[GateCheck]:
    """Rows of only one of the runs have nothing to be compared with."""
    changes = {
        (setup_of(change.after), change.backend): change
        for change in benchmark_changes(earlier.benchmarks, later.benchmarks)
    }
    old = {(setup_of(row), row.backend): row for row in earlier.benchmarks}
    new = {(setup_of(row), row.backend): row for row in later.benchmarks}
    for key, row in (new | old).items():
        subject = row_name(row)
        if row.backend == EAGER:
            continue
        if key in changes:
            yield _changed(changes[key], subject, limit)
        else:
            which = later.run if key in old else earlier.run
            yield _unknown(subject, f"{subject} is not in {which}", limit)


def _changed(change: BenchmarkChange, subject: str, limit: float) -> GateCheck:
    judged = change.judged
    if judged is None or judged.ci is None:
        told = f"{subject}: {change.reason}"
        return _unknown(subject, f"{told}; {_MORE}" if change.reason == TOO_FEW else told, limit)
    of = "its earlier time"
    if change.by == "speedup":
        of = "its earlier time relative to eager mode, which changed too"
    found = _judged(subject, judged, limit, of)
    if found.outcome != "fail" or change.by == "speedup":
        return found
    # It takes longer than allowed; does the machine alone explain it?
    if change.eager is None:
        return _unknown(subject, f"{found.message}, but {NO_CONTROL}", limit, found.found)
    by_speedup = change.speedup
    if by_speedup is None or by_speedup.ci is None or _outcome(by_speedup.ci, limit) != "fail":
        told = f"{found.message}, but {NOISY_CONTROL}; {_MORE}"
        return _unknown(subject, told, limit, found.found)
    return found


def _judged(subject: str, speed: Change, limit: float, of: str) -> GateCheck:
    assert speed.ci is not None
    low, high = 1 / speed.ci[1], 1 / speed.ci[0]
    outcome = _outcome(speed.ci, limit)
    message = f"{subject}: {1 / speed.value:.2f}x [{low:.2f}, {high:.2f}] {of}"
    if speed.too_noisy:
        message = f"{subject}: {low:.2f} to {high:.2f} times {of}"
    if outcome == "unknown":
        message += f"; the interval spans the limit of {limit:g}x: {_MORE}"
    else:
        message += f", at most {limit:g}x allowed"
    return GateCheck(
        name="slowdown",
        outcome=outcome,
        message=message,
        found=1 / speed.value,
        limit=limit,
        subject=subject,
    )


def _outcome(speed_ci: Interval, limit: float) -> Verdict:
    low, high = 1 / speed_ci[1], 1 / speed_ci[0]
    return "fail" if low > limit else "pass" if high <= limit else "unknown"


def _unknown(subject: str, message: str, limit: float, found: float | None = None) -> GateCheck:
    return GateCheck(
        name="slowdown",
        outcome="unknown",
        message=message,
        found=found,
        limit=limit,
        subject=subject,
    )
