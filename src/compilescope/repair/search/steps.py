"""The steps of a search: each version that was kept, and what it still loses."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.analysis.findings import findings
from compilescope.fixes.merge import merge
from compilescope.fixes.subject import Program, Subject
from compilescope.model.fix_search import FixAttempt, FixLeft
from compilescope.processes.outcome import last_words
from compilescope.repair.search.attempts import Tried
from compilescope.repair.trials.losses import losses_of
from compilescope.repair.trials.recorded_runs import CapturedRun
from compilescope.repair.trials.verification import Verification
from compilescope.repair.trials.version import Version


@dataclass(frozen=True)
class SearchStep:
    """A version that was kept, and what a run of it showed."""

    version: Version
    captured: CapturedRun
    kept: list[Tried] = field(default_factory=list)
    verification: Verification | None = None
    """Against the step before."""


def step_of(version: Version, kept: list[Tried], verification: Verification) -> SearchStep | None:
    if verification.verdict != "verified" or verification.captured is None:
        return None
    return SearchStep(version, verification.captured, kept, verification)


def has_vanished(subject: Subject, verification: Verification) -> bool:
    """Has another fix mended this one too?"""
    if verification.captured is None:
        return False
    after = findings(verification.captured.digest)
    return subject.finding.fingerprint not in {each.fingerprint for each in after}


def environment_of(kept: list[Tried]) -> dict[str, str]:
    return {name: value for tried in kept for name, value in tried.patch.environment.items()}


def ending_of(captured: CapturedRun) -> tuple[int, bool]:
    return captured.exit_status, captured.timed_out


def losses_in_words(captured: CapturedRun) -> str:
    lost = losses_of(captured.digest, captured.operators)
    parts = [
        f"{number} {name if number == 1 else f'{name}s'}"
        for number, name in (
            (lost.breaks, "graph break"),
            (lost.recompiles, "recompile"),
            (lost.failures, "failed compilation"),
        )
        if number
    ]
    return ", ".join(parts) or "nothing to fix"


def still_lost(captured: CapturedRun, attempts: list[FixAttempt]) -> list[FixLeft]:
    """What is still lost, with the best reason that there is."""
    reasons = {each.fingerprint: each.reason for each in attempts if not each.kept}
    told = []
    for finding in findings(captured.digest):
        place = f"{finding.file}:{finding.line}"
        why = reasons.get(finding.fingerprint) or finding.first_step or finding.message
        told.append(FixLeft(place, why))
    return told


def error_words(captured: CapturedRun) -> str:
    return last_words(captured.stderr).rstrip(".")[:200] or "no error message"


def merged(program: Program, won: list[Tried]) -> tuple[dict[str, str], list[int]]:
    """The texts with all patches that do not touch the same lines as one before them."""
    bases = {file: program.text(file) for tried in won for file in tried.patch.files}
    return merge(bases, [tried.patch.files for tried in won])


def best_first(program: Program, won: list[Tried]) -> list[Tried]:
    """Where two change the same lines, the one that leaves less has them: a check with its message
    in the graph, and not the message alone."""
    if len(merged(program, won)[1]) == len(won):
        return won
    return sorted(won, key=_left_over)


def _left_over(tried: Tried) -> int:
    after = tried.verification.after
    return after.breaks + after.recompiles + after.failures
