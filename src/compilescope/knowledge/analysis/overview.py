"""Several runs as a whole: how many pass what was checked of them, the worst, and what stands now.

What could not be told, or was not checked, never counts as passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from compilescope.knowledge.analysis.check_results import CheckState
from compilescope.knowledge.analysis.device_checks import device_checks
from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.analysis.gate.verdict import Judgement
from compilescope.knowledge.analysis.run_status import program_of, status_of
from compilescope.knowledge.findings.differences import differences
from compilescope.knowledge.findings.violations import violations
from compilescope.record.bodies import DiffOutcome, TensorDiff, Violation
from compilescope.record.run import Run


class WorstRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is furthest from passing, and where."""

    run: str
    program: str
    text: str


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Runs by how they fared in one check."""

    passed: int
    failed: int
    unknown: int
    """Checked, and nobody can say."""
    unchecked: int
    worst: WorstRun | None = None

    @property
    def checked(self) -> int:
        return self.passed + self.failed + self.unknown


class RunStanding(msgspec.Struct, frozen=True, kw_only=True):
    """One run in one line."""

    run: str
    program: str
    models: tuple[str, ...]
    """Those that the run names."""
    started: float
    status: str
    constraints: CheckState
    numbers: CheckState
    gate: CheckState
    graphs: int | None
    """None, as below: numbers were compared, and what was compiled was not recorded."""
    breaks: int | None
    recompiles: int | None
    failures: int | None
    causes: int | None
    """Distinct ones, of every kind; of a comparison, the operations that compute something else."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs as a whole."""

    runs: int
    programs: tuple[str, ...]
    models: tuple[str, ...]
    """Named by the runs; a program that names none counts as one under its own name."""
    constraints: Tally
    numbers: Tally
    gate: Tally
    all: tuple[RunStanding, ...]
    """Newest first."""
    now: tuple[RunStanding, ...]
    """The newest run of each program."""


class JudgedRun(msgspec.Struct, frozen=True):
    """A run, its digest, and what the gate says of it; None: it was not asked."""

    run: Run
    seen: Digest
    judgement: Judgement | None


def overview(judged: Sequence[JudgedRun]) -> Overview:
    ordered = sorted(judged, key=lambda each: each.run.header.started_ns, reverse=True)
    rows = tuple(_standing(each) for each in ordered)
    newest = {row.program: row for row in reversed(rows)}
    return Overview(
        runs=len(rows),
        programs=tuple(dict.fromkeys(row.program for row in rows)),
        models=tuple(dict.fromkeys(name for row in rows for name in row.models)),
        constraints=_tally("constraints", rows, ordered, _worst_violations),
        numbers=_tally("numbers", rows, ordered, _worst_number),
        gate=_tally("gate", rows, ordered, _worst_verdict),
        all=rows,
        now=tuple(row for row in rows if newest[row.program] is row),
    )


def _standing(each: JudgedRun) -> RunStanding:
    run, seen = each.run, each.seen
    recorded = not seen.only_compares
    return RunStanding(
        run=run.header.run,
        program=program_of(run.header),
        models=tuple(dict.fromkeys(_models(run, seen))),
        started=run.header.started_ns / 1e9,
        status=status_of(run.header, live=run.live),
        constraints=seen.constraints.state,
        numbers=seen.numbers.state,
        gate=_gate(each),
        graphs=seen.graphs if recorded else None,
        breaks=_breaks(seen) if recorded else None,
        recompiles=_recompiles(seen) if recorded else None,
        failures=len(seen.failures) if recorded else None,
        causes=len(findings(seen)) if recorded else _wrong_operations(run),
    )


def _breaks(seen: Digest) -> int:
    return len(seen.sites) + sum(job.breaks or 0 for job in seen.jobs)


def _recompiles(seen: Digest) -> int:
    again = sum(frame.avoidable for frame in seen.recompiles)
    return again + sum(job.recompiles or 0 for job in seen.jobs)


def _wrong_operations(run: Run) -> int | None:
    """Those that a comparison names; None where it names none, which says nothing of causes."""
    named = {found.words for _, body in run.of(DiffOutcome) for found in body.operations}
    return len(named) or None


def _models(run: Run, seen: Digest) -> Iterable[str]:
    yield from (body.model for _, body in run.of(Violation) if body.model)
    yield from (body.model for _, body in run.of(TensorDiff) if body.model)
    yield from (row.model for row in seen.benchmarks)
    yield from (job.name for job in seen.jobs)


def _gate(each: JudgedRun) -> CheckState:
    if each.judgement is None:
        return "unchecked"
    if each.seen.only_compares and not any(c.name == "differences" for c in each.judgement.checks):
        return "unchecked"  # It compiled nothing that the other limits could look at.
    return each.judgement.outcome


def _tally(
    check: str,
    rows: Sequence[RunStanding],
    judged: Sequence[JudgedRun],
    worst: Callable[[JudgedRun], tuple[float, str]],
) -> Tally:
    states = [getattr(row, check) for row in rows]
    failed = [
        (*worst(each), row)
        for row, each, state in zip(rows, judged, states, strict=True)
        if state == "fail"
    ]
    found = max(failed, key=lambda entry: entry[0], default=None)
    return Tally(
        passed=states.count("pass"),
        failed=states.count("fail"),
        unknown=states.count("unknown"),
        unchecked=states.count("unchecked"),
        worst=found and WorstRun(run=found[2].run, program=found[2].program, text=found[1]),
    )


def _worst_violations(each: JudgedRun) -> tuple[float, str]:
    errors = [found for found in violations(each.run) if found.level == "error"]
    if not errors:
        worst = max(device_checks(each.run), key=lambda check: check.errors)
        of = f" in {', '.join(worst.models)}" if worst.models else ""
        return worst.errors, f"{_many(worst.errors, 'violation')}{of} on {worst.device}"
    first = errors[0]
    model = f" of {first.model}" if first.model else ""
    text = f"{_many(len(errors), 'violation')} on {first.device}, first {first.rule}: "
    return len(errors), f"{text}{first.op}{model}"


def _worst_number(each: JudgedRun) -> tuple[float, str]:
    wrong = [found for found in differences(each.run) if found.level == "error"]
    if wrong:
        worst = max(wrong, key=lambda found: found.largest_error)
        body, error = worst.diff, worst.largest_error
        said = f"max error {error:.3g}" if error != float("inf") else body.reason or "differs"
        of = f"{body.model} " if body.model else ""
        return error, f"{of}{body.path}: {said} ({body.test or 'test'} vs. {body.reference})"
    names = [f"{row.model} on {row.backend}" for row in each.seen.benchmarks
             if row.kerneldiff == "fail"]  # fmt: skip
    names += [job.name for job in each.seen.jobs if job.kerneldiff == "fail"]
    if names:
        return 0.0, f"{names[0]} differs from eager mode"
    # A comparison may fail before there is a value to compare: a backend that raises.
    failed = [body for _, body in each.run.of(DiffOutcome) if body.verdict == "fail"]
    reasons = [body.reason or body.error for body in failed]
    return 0.0, next(filter(None, reasons), "the comparison failed")


def _worst_verdict(each: JudgedRun) -> tuple[float, str]:
    assert each.judgement is not None
    failed = [check for check in each.judgement.checks if check.outcome == "fail"]
    return len(each.judgement.against), "; ".join(check.message for check in failed)


def _many(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
