"""From rounds to one verdict with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from compilescope.diff.failing import describe_failure
from compilescope.diff.report import DiffReport
from compilescope.diff.rounds import Round
from compilescope.diff.sides import Side
from compilescope.diff.values import ValueDiff

if TYPE_CHECKING:
    from compilescope.diff.harness import KernelDiffHarness

Verdict = Literal["pass", "fail", "unknown"]


def sum_up(
    harness: KernelDiffHarness, reference: Side, test: Side, rounds: list[tuple[str, Round]]
) -> DiffReport:
    diffs = [
        replace(diff, path=f"{label}{diff.path}") for label, found in rounds for diff in found.diffs
    ]
    compiles = test.backend.calls if test.backend is not None else 0
    verdict, reason = _verdict(diffs, compiles)
    errors = [found.error for _, found in rounds if found.error is not None]
    ran = [found for _, found in rounds if found.diffs]
    return DiffReport(
        model_name=harness.model_name,
        reference_backend=reference.name,
        test_backend=test.name,
        verdict=verdict,
        reason=reason,
        diffs=tuple(diffs),
        compiles=compiles,
        notes=tuple(f"{label}{note}" for label, found in rounds for note in found.notes),
        anchored=bool(ran) and all(found.anchored for found in ran),
        error_message=describe_failure(errors[0]) if errors else "",
        inputs=len(ran),
        reference_run_time=rounds[0][1].reference_seconds,
        test_run_time=rounds[0][1].test_seconds,
        test_compile_time=test.backend.seconds if test.backend is not None else 0.0,
    )


def _verdict(diffs: list[ValueDiff], compiles: int) -> tuple[Verdict, str]:
    wrong = [diff for diff in diffs if diff.verdict == "fail"]
    unclear = [diff for diff in diffs if diff.verdict == "unknown"]
    if wrong:
        # What is missing or has another shape explains the rest.
        first = next((diff for diff in wrong if not diff.metrics), wrong[0])
        return "fail", f"{_counted(wrong, diffs)} differ: {first.path}: {first.reason}"
    if not compiles:
        return "unknown", "nothing was compiled, so the test backend was never called"
    if unclear:
        words = f"{unclear[0].path}: {unclear[0].reason}"
        return "unknown", f"{_counted(unclear, diffs)} inconclusive: {words}"
    if not diffs:
        return "unknown", "nothing to compare: the model returns and changes nothing"
    everything = f"all {len(diffs)} values" if len(diffs) > 1 else "the only value"
    if all(diff.metrics.get("differing", 0.0) == 0 for diff in diffs):
        return "pass", f"{everything}: equal"
    if all(_is_anchored(diff) for diff in diffs if diff.metrics.get("differing")):
        return "pass", f"{everything}: equal up to rounding, as a float64 run shows"
    return "pass", f"{everything}: equal within tolerance"


def _is_anchored(diff: ValueDiff) -> bool:
    """Was it held against float64, and not against a tolerance?"""
    judgement = diff.numbers.judgement if diff.numbers is not None else None
    return judgement is not None and judgement.reference_error is not None


def _counted(some: list[ValueDiff], all_of_them: list[ValueDiff]) -> str:
    return f"{len(some)} of {len(all_of_them)} values"
